"""A short real training run through the user's own launcher, watched from outside."""
