"""How biased are the labels? Class shares, propensities, tests and checks, before any network is trained."""
