"""From results to tables, figures' data, verdicts and the doctor's answers."""
