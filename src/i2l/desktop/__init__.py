"""The desktop: a region of the screen, or a picture on the clipboard, in; LaTeX on the clipboard."""
