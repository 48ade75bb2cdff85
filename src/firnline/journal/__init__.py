"""The durable record of every run: plan, list of victims, events, outcomes, lease. Written before anything is done."""
