"""Pictures that people bring: opened safely, their ink found, and prepared for a model. Needs only Pillow."""
