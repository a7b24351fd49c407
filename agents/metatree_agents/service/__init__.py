"""The query service: topics, queries, engines that answer them, over HTTP; see docs/service.md."""
