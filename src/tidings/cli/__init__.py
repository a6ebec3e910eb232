"""The `tidings` command, one file a subcommand. Heavy imports happen inside commands: `--help` is instant."""
