"""Views of topk."""
