"""What a scheduler gave to a job, against what the job can see."""
