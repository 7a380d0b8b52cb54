"""What people type into a search box, in some twenty languages, and which memory they expect first."""
