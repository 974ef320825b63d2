"""What the model looked at for each token: on the image, as boxes, and how near the truth that is."""
