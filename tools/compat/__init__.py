"""The compatibility matrix: environments, what runs in them, and the page that says so."""
