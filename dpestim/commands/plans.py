"""`dpestim plan`."""

from dpestim.commands.parser import DONE
from dpestim.commands.streams import show


def run(args):
    """Print the plan of a survey."""
    from dpestim.local import plan, plan_mean

    if [args.users, args.epsilon, args.target_rmse].count(None) != 1:
        raise ValueError("give two of --users, --epsilon and --target-rmse: the third is found")
    asked = {"n_users": args.users, "epsilon": args.epsilon, "target_rmse": args.target_rmse,
             "probability": args.probability}
    if args.categories is not None:
        found = plan(n_categories=args.categories, **asked)
    else:
        found = plan_mean(n_columns=args.numbers, **asked)
    show(found, args.json, n_users=found.n_users, epsilon=found.epsilon, best=found.best.mechanism,
         recommendation=found.recommendation)
    return DONE
