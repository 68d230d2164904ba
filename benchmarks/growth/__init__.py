"""What a thread leaves on disk, and what its turns cost, as it grows."""
