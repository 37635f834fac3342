"""What is known and said: facts, findings, reports. Imports nothing else of ours."""
