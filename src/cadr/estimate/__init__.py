"""Statistics only: the class prior, class propensities and risks under missing labels."""
