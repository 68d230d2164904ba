"""The way out: fuse the legs, choose the hits."""
