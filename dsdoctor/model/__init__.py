"""The values of dsdoctor: facts, findings, reports, plans. Imports only the foundation."""
