"""The evaluation of the paper on symmetric publish/subscribe, done again."""
