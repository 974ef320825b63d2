"""The page and the HTTP API: one process answers, others read."""
