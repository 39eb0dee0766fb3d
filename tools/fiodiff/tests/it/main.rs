//! Generated jobs, run by fio and by hoistway.

mod jobs;
