"""Answers over HTTP: a JSON API with the schemas of `--json`, and the what-if notebook as a web app."""
