//! A place for the program that the agents of this folder belong to.
