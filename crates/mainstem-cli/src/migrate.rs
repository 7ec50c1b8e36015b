//! `mainstem migrate`: creates the tables of a database, or changes those of an earlier version.

use crate::{
    args::Migrate,
    exit::{Exit, Fault, OrExit},
    print::print,
    store,
};

pub(crate) fn run(args: &Migrate) -> Result<Exit, Fault> {
    let done = store::migrate(&args.journal).or_exit(Exit::Failed)?;
    print(&format!("{done}\n"))?;
    Ok(Exit::Reply)
}
