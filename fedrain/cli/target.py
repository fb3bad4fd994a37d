"""Arguments for a climatology of one's own."""

import argparse
from typing import TYPE_CHECKING, Any

from fedrain.errors import InputError

if TYPE_CHECKING:
    from fedrain.climate import ZonalMean


def add_target(parser: Any) -> None:
    """Add the arguments that say which climatology is to be reached."""
    parser.add_argument(
        "--target",
        metavar="FILE",
        help="NetCDF file with your own climatology (default: NCEP/NCAR)",
    )
    parser.add_argument(
        "--variable",
        metavar="NAME",
        help="variable of that file (default: its surface temperature)",
    )
    parser.add_argument(
        "--weight-months",
        action="store_true",
        help="weight the months of that file by their length",
    )


def chosen_target(options: argparse.Namespace) -> "ZonalMean | None":
    """The climatology that the arguments name; None for the built-in one."""
    from fedrain.climate import read_zonal_mean

    if options.target is not None:
        return read_zonal_mean(options.target, options.variable, options.weight_months)
    if options.variable is not None or options.weight_months:
        raise InputError("--variable and --weight-months go with --target")
    return None
