"""The built-in pack of dsdoctor: one condition, one file, in families."""
