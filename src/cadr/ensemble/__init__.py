"""Classifiers that are fitted in seconds where labels are missing not at random: simple learners, class-aware.

Each learner is fitted to the labels and, in rounds, to labels imputed for the rest, the surest first, in keeping with
estimated class shares (`imputation`). Their cross-fitted predictions decide how much each of them counts (`stack`) and
how large the classes are (`shares`). What comes out is one `torch.nn.Module`, kept, predicted with and exported as any
network is.
"""
