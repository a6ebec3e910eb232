"""Running a plan: views that feed views, document by document."""
