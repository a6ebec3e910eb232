"""The `tidings` command, one file a subcommand. Heavy imports happen inside the commands, so that `--help` is instant."""
