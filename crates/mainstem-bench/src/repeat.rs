//! One load again and again, for a profiler.

use anyhow::Result;
use clap::{Args, ValueEnum};

use crate::{
    client::ClientKind, measure::quantile, sample::Sample, script::Load, server::Server, turns::turn,
    wire::Wire,
};

#[derive(Clone, Debug, Args)]
pub(crate) struct Repeat {
    subject: Subject,
    children: u32,
    deltas: u32,
    #[arg(long, default_value_t = 1)]
    depth: u16,
    #[arg(long, default_value_t = 1)]
    times: u32,
    #[arg(long, default_value = "chat")]
    wire: Wire,
}

#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
enum Subject {
    Bare,
    Provider,
    Mainstem,
    /// Mainstem with scripted models, in process.
    Scripted,
    /// Runs of one scripted agent, as many as `children`; a turn counts as a delta.
    Turns,
}

impl Repeat {
    /// Reads the load and prints the time of a delta.
    pub(crate) fn run(&self) -> Result<()> {
        let load = Load::new(self.children, self.deltas).at_depth(self.depth).over(self.wire);
        // Without a server, so that an instruction count covers only the loads in process.
        let in_process = matches!(self.subject, Subject::Scripted | Subject::Turns);
        let server = if in_process { None } else { Some(Server::start()?) };
        let url = server.as_ref().map_or("", Server::url);
        let measure = || match self.subject {
            Subject::Bare => Ok(Sample::over_http(ClientKind::Bare, url, &load)?.per_delta()),
            Subject::Provider => Ok(Sample::over_http(ClientKind::Provider, url, &load)?.per_delta()),
            Subject::Mainstem => Ok(Sample::over_http(ClientKind::Mainstem, url, &load)?.per_delta()),
            Subject::Scripted => Ok(Sample::in_process(&load)?.per_delta()),
            Subject::Turns => turn(self.children),
        };
        let taken: Vec<_> = (0..self.times).map(|_| measure()).collect::<Result<_>>()?;
        let [least, middle] = [0.0, 0.5].map(|share| quantile(taken.iter().copied(), share));
        println!("{least:.3} µs a delta at least, {middle:.3} µs in the middle");
        Ok(())
    }
}
