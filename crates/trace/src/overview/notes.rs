//! What the elevators' notes say: the messages of the kernel's CFQ and BFQ, and those of hoistway's own recordings.

/// Whose queue a note is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Queue {
    /// A process's own.
    Of(u32),
    /// A process's for what nobody waits for, where the elevator keeps two.
    AsyncOf(u32),
    /// One that several processes share; the kernel does not tell whose.
    Shared,
}

/// Why a slice, or a wait for a queue's next request, ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Ended {
    /// The trace does not say.
    #[default]
    Unknown = 0,
    /// It did not send the next request in time.
    TooIdle = 1,
    /// Its time was over.
    TimedOut = 2,
    /// Its budget was used up.
    Exhausted = 3,
    /// It had no more requests.
    NoMoreRequests = 4,
    /// Another queue took the disk.
    Preempted = 5,
    /// What was waited for came.
    RequestCame = 6,
}

/// What a note says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// A queue is served from now on; its budget in sectors, where it has one.
    Begins(Queue, Option<u64>),
    /// It is not served any more. With what it was given and what it took, in sectors, where the note says that.
    Ends { queue: Queue, why: Ended, served: Option<u64>, budget: Option<u64> },
    /// So many sectors of it were served.
    Served(Queue, u64),
    /// The drive is kept idle for its next request.
    Idles(Queue),
    /// It is not any more.
    IdleEnds(Queue, Ended),
    /// It takes the disk from whoever has it.
    Preempts(Queue),
    /// Its weight was raised, so many times.
    Raised(Queue, u64),
    /// It shares another's queue from now on.
    Merged(Queue),
    /// It has a queue of its own again.
    Split(Queue),
    /// A request of it was let in while another queue was waited for.
    Injected(Queue),
}

/// What a note says, if it is one of those that a page shows.
pub fn parse(text: &[u8]) -> Option<Told> {
    let text = text.trim_ascii();
    if let Some(rest) = text.strip_prefix(b"bfq").or_else(|| text.strip_prefix(b"cfq")) {
        let (queue, rest) = kernel_queue(rest)?;
        return kernel_note(queue, std::str::from_utf8(rest).ok()?);
    }
    own_note(std::str::from_utf8(text).ok()?)
}

/// The elevator that wrote a note, if the note tells.
pub fn elevator(text: &[u8]) -> Option<&str> {
    let own = text.strip_prefix(b"elevator ").and_then(|name| std::str::from_utf8(name).ok());
    own.map(str::trim).or_else(|| {
        let kernels = ["bfq", "cfq"].into_iter().find(|name| text.starts_with(name.as_bytes()));
        kernels.filter(|_| text.get(3).is_some_and(|next| next.is_ascii_digit() || matches!(next, b' ' | b'S')))
    })
}

/// `2896S `, `0A `, `SHARED-S `, `12SN ` at the beginning; notes about the device have a blank there.
fn kernel_queue(text: &[u8]) -> Option<(Queue, &[u8])> {
    let end = text.iter().position(|byte| *byte == b' ')?;
    let (name, rest) = (text.get(..end)?, text.get(end + 1..)?);
    let digits = name.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if digits == 0 {
        return name.starts_with(b"SHARED").then_some((Queue::Shared, rest));
    }
    let pid = std::str::from_utf8(name.get(..digits)?).ok()?.parse().ok()?;
    let queue = if name.get(digits) == Some(&b'A') { Queue::AsyncOf(pid) } else { Queue::Of(pid) };
    Some((queue, rest))
}

fn kernel_note(queue: Queue, text: &str) -> Option<Told> {
    let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
    let ends = |why| Told::Ends { queue, why, served: None, budget: None };
    match word {
        "set_in_service_queue," => Some(Told::Begins(queue, last_number(rest))),
        "set_active" => Some(Told::Begins(queue, None)),
        "bfqq_served" => Some(Told::Served(queue, first_number(rest)?)),
        "expire" => Some(ends(bfq_reason(first_number(rest)?))),
        "slice" if rest.starts_with("expired") => {
            Some(ends(if rest.ends_with("t=1") { Ended::TimedOut } else { Ended::Unknown }))
        }
        "arm_idle:" => Some(Told::Idles(queue)),
        "preempt" => Some(Told::Preempts(queue)),
        "merging" if rest.starts_with("with queue") => Some(Told::Merged(queue)),
        "breaking" if rest.starts_with("apart") => Some(Told::Split(queue)),
        "wrais" | "raise" => first_number(rest).map(|times| Told::Raised(queue, times)),
        // Notes of groups have the group's path before the text.
        path if path.starts_with('/') && !rest.is_empty() => kernel_note(queue, rest),
        _ => None,
    }
}

/// The kernel's BFQ numbers its reasons in the order of its documentation's list.
fn bfq_reason(number: u64) -> Ended {
    match number {
        0 => Ended::TooIdle,
        1 => Ended::TimedOut,
        2 => Ended::Exhausted,
        3 => Ended::NoMoreRequests,
        4 => Ended::Preempted,
        _ => Ended::Unknown,
    }
}

/// Notes as hoistway's recordings have them.
fn own_note(text: &str) -> Option<Told> {
    if let Some(rest) = text.strip_prefix("slice of ") {
        let (queue, rest) = own_queue(rest)?;
        let ends = |why| Told::Ends { queue, why, served: None, budget: None };
        return match rest {
            rest if rest.starts_with("begins") => Some(Told::Begins(queue, None)),
            rest if rest.starts_with("is over") => Some(ends(Ended::Unknown)),
            rest if rest.starts_with("is taken away") => Some(ends(Ended::Preempted)),
            _ => None,
        };
    }
    if let Some(rest) = text.strip_prefix("budget of ") {
        let (queue, rest) = own_queue(rest)?;
        let (why, figures) = rest.strip_prefix("is over (")?.split_once(')')?;
        let mut figures = numbers(figures);
        return Some(Told::Ends { queue, why: own_reason(why), served: figures.next(), budget: figures.next() });
    }
    if let Some(rest) = text.strip_prefix("idle for ") {
        let (queue, rest) = rest.split_once(": ").or_else(|| rest.split_once(' '))?;
        let queue = Queue::Of(queue.parse().ok()?);
        return Some(match rest {
            "its request came" => Told::IdleEnds(queue, Ended::RequestCame),
            "in vain" => Told::IdleEnds(queue, Ended::TooIdle),
            _ => Told::Idles(queue),
        });
    }
    if let Some(rest) = text.strip_prefix("anticipates ") {
        return Some(Told::Idles(own_queue(rest)?.0));
    }
    if let Some(rest) = text.strip_prefix("anticipation of ") {
        let vain = rest.ends_with("in vain");
        let queue = Queue::Of(first_number(rest)?.try_into().ok()?);
        return Some(Told::IdleEnds(queue, if vain { Ended::TooIdle } else { Ended::RequestCame }));
    }
    if let Some(rest) = text.strip_prefix("weight of ") {
        return Some(Told::Raised(own_queue(rest)?.0, last_number(rest)?));
    }
    let (queue, rest) = own_queue(text)?;
    match rest {
        rest if rest.starts_with("preempts ") => Some(Told::Preempts(queue)),
        rest if rest.starts_with("shares the queue of ") => Some(Told::Merged(queue)),
        rest if rest.starts_with("has a queue of its own") => Some(Told::Split(queue)),
        rest if rest.starts_with("is let in while ") => Some(Told::Injected(queue)),
        _ => None,
    }
}

fn own_queue(text: &str) -> Option<(Queue, &str)> {
    let (queue, rest) = text.split_once(' ')?;
    Some((Queue::Of(queue.parse().ok()?), rest))
}

fn own_reason(text: &str) -> Ended {
    match text {
        "too idle" => Ended::TooIdle,
        "timed out" => Ended::TimedOut,
        "exhausted" => Ended::Exhausted,
        "no more requests" => Ended::NoMoreRequests,
        "preempted" => Ended::Preempted,
        _ => Ended::Unknown,
    }
}

fn numbers(text: &str) -> impl DoubleEndedIterator<Item = u64> {
    text.split(|c: char| !c.is_ascii_digit()).filter_map(|digits| digits.parse().ok())
}

fn first_number(text: &str) -> Option<u64> {
    numbers(text).next()
}

fn last_number(text: &str) -> Option<u64> {
    numbers(text).next_back()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str) -> Option<Told> {
        parse(text.as_bytes())
    }

    #[test]
    fn the_kernels_bfq_tells_slices_budgets_and_why_they_ended() {
        let queue = Queue::Of(2896);
        assert_eq!(told("bfq2896S set_in_service_queue, cur-budget = 1644"), Some(Told::Begins(queue, Some(1644))));
        assert_eq!(told("bfq2896S bfqq_served 8 secs"), Some(Told::Served(queue, 8)));
        let ends = |queue, why| Some(Told::Ends { queue, why, served: None, budget: None });
        assert_eq!(told("bfq2896S expire (4, slow 0, num_disp 1, short_ttime 1)"), ends(queue, Ended::Preempted));
        assert_eq!(
            told("bfqSHARED-S expire (2, slow 0, num_disp 9, short_ttime 1)"),
            ends(Queue::Shared, Ended::Exhausted)
        );
        assert_eq!(told("bfq0A set_in_service_queue, cur-budget = 7"), Some(Told::Begins(Queue::AsyncOf(0), Some(7))));
        assert_eq!(told("bfq dispatch requests: 1 busy queues"), None);
        assert_eq!(told("bfq2896S put_queue: 00000000a8d15433 2"), None);
    }

    #[test]
    fn the_kernels_cfq_tells_slices_idling_and_preemptions() {
        assert_eq!(told("cfq12SN / set_active wl_class:0 wl_type:2"), Some(Told::Begins(Queue::Of(12), None)));
        assert_eq!(told("cfq12S arm_idle: 8 group_idle: 0"), Some(Told::Idles(Queue::Of(12))));
        assert_eq!(told("cfq12S preempt"), Some(Told::Preempts(Queue::Of(12))));
        let ended = Told::Ends { queue: Queue::Of(12), why: Ended::TimedOut, served: None, budget: None };
        assert_eq!(told("cfq12S slice expired t=1"), Some(ended));
    }

    #[test]
    fn hoistways_own_notes_are_read_again() {
        let queue = Queue::Of(5);
        assert_eq!(told("slice of 5 begins, level 4"), Some(Told::Begins(queue, None)));
        let over = |why, served, budget| Some(Told::Ends { queue, why, served, budget });
        assert_eq!(told("slice of 5 is taken away, 300 left"), over(Ended::Preempted, None, None));
        assert_eq!(
            told("budget of 5 is over (exhausted), 16384 of 16000 sectors"),
            over(Ended::Exhausted, Some(16384), Some(16000))
        );
        assert_eq!(told("idle for 5 until 8000000"), Some(Told::Idles(queue)));
        assert_eq!(told("idle for 5: in vain"), Some(Told::IdleEnds(queue, Ended::TooIdle)));
        assert_eq!(told("5 preempts 7"), Some(Told::Preempts(queue)));
        assert_eq!(told("anticipation of 5 ends"), Some(Told::IdleEnds(queue, Ended::RequestCame)));
        assert_eq!(told("weight of 5 times 30"), Some(Told::Raised(queue, 30)));
        assert_eq!(told("requests are held back"), None);
    }

    #[test]
    fn a_note_names_its_elevator() {
        assert_eq!(elevator(b"elevator kyber"), Some("kyber"));
        assert_eq!(elevator(b"bfq12S add_request 1"), Some("bfq"));
        assert_eq!(elevator(b"cfq workload slice:40"), Some("cfq"));
        assert_eq!(elevator(b"fio starts"), None);
    }
}
