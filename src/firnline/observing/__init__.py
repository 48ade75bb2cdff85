"""Those who hear of runs: logs, webhooks, traces and metrics."""
