"""The shuffle model: users randomise a little, a shuffler forgets who sent what, an analyser sees what is left."""
