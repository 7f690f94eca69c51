"""What others would rent: the papers' searches on our model, to compare with and to test by."""
