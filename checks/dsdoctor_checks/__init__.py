"""The built-in pack of dsdoctor: one condition, one file, in families."""

#: The day on which the oldest of its tables was compared with its authority; tools/facts has all.
FACTS_AS_OF = "2026-11-21"
