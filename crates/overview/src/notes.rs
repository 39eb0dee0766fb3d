//! Parses messages of elevators: those of the kernel's CFQ and BFQ, and those of hoistway's
//! recordings.

/// The elevator queue that a message refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
pub enum Queue {
    /// The queue of a process, for synchronous requests if the elevator keeps two.
    Of(u32),
    /// The queue of a process for asynchronous requests, if the elevator keeps two.
    AsyncOf(u32),
    /// A queue shared by several processes, which the kernel does not identify.
    Shared,
}

/// Reason for the end of a slice or of idling.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum EndReason {
    /// Not recorded.
    #[default]
    Unknown = 0,
    /// The process did not submit its next request in time.
    TooIdle = 1,
    /// The time slice was over.
    TimedOut = 2,
    /// The budget was exhausted.
    Exhausted = 3,
    /// The queue was empty.
    NoMoreRequests = 4,
    /// Another queue preempted it.
    Preempted = 5,
    /// The awaited request arrived.
    RequestCame = 6,
}

/// Content of an elevator message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoteEvent {
    /// A queue enters service; with its budget in sectors, if it has one.
    Begins(Queue, Option<u64>),
    /// A queue leaves service; with served sectors and budget in sectors, if the message states
    /// them.
    Ends { queue: Queue, reason: EndReason, served: Option<u64>, budget: Option<u64> },
    /// A number of sectors of the queue was served.
    Served(Queue, u64),
    /// The drive idles for the next request of the queue.
    Idles(Queue),
    /// Idling for the queue ends.
    IdleEnds(Queue, EndReason),
    /// The queue preempts the queue in service.
    Preempts(Queue),
    /// The weight of the queue was raised by this factor.
    Raised(Queue, u64),
    /// The queue is merged into another one.
    Merged(Queue),
    /// The queue is split from a shared one.
    Split(Queue),
    /// A request of the queue was injected during idling for another queue.
    Injected(Queue),
}

/// Parses a message; None for messages that a page does not show.
pub fn parse(text: &[u8]) -> Option<NoteEvent> {
    let text = text.trim_ascii();
    if let Some(rest) = text.strip_prefix(b"bfq").or_else(|| text.strip_prefix(b"cfq")) {
        let (queue, rest) = kernel_queue(rest)?;
        return kernel_note(queue, std::str::from_utf8(rest).ok()?);
    }
    own_note(std::str::from_utf8(text).ok()?)
}

/// Returns the name of the elevator that wrote a message, if the message reveals it.
pub fn elevator(text: &[u8]) -> Option<&str> {
    let own = text.strip_prefix(b"elevator ").and_then(|name| std::str::from_utf8(name).ok());
    own.map(str::trim).or_else(|| {
        let kernels = ["bfq", "cfq"].into_iter().find(|name| text.starts_with(name.as_bytes()));
        kernels.filter(|_| text.get(3).is_some_and(|next| next.is_ascii_digit() || matches!(next, b' ' | b'S')))
    })
}

/// Parses `2896S `, `0A `, `SHARED-S ` or `12SN ` at the beginning. Messages about the device have
/// a blank there.
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

fn kernel_note(queue: Queue, text: &str) -> Option<NoteEvent> {
    let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
    let ends = |reason| NoteEvent::Ends { queue, reason, served: None, budget: None };
    match word {
        "set_in_service_queue," => Some(NoteEvent::Begins(queue, last_number(rest))),
        "set_active" => Some(NoteEvent::Begins(queue, None)),
        "bfqq_served" => Some(NoteEvent::Served(queue, first_number(rest)?)),
        "expire" => Some(ends(bfq_reason(first_number(rest)?))),
        "slice" if rest.starts_with("expired") => {
            Some(ends(if rest.ends_with("t=1") { EndReason::TimedOut } else { EndReason::Unknown }))
        }
        "arm_idle:" => Some(NoteEvent::Idles(queue)),
        "preempt" => Some(NoteEvent::Preempts(queue)),
        "merging" if rest.starts_with("with queue") => Some(NoteEvent::Merged(queue)),
        "breaking" if rest.starts_with("apart") => Some(NoteEvent::Split(queue)),
        "wrais" | "raise" => first_number(rest).map(|times| NoteEvent::Raised(queue, times)),
        // Messages about groups have the path of the group before the text.
        path if path.starts_with('/') && !rest.is_empty() => kernel_note(queue, rest),
        _ => None,
    }
}

/// Converts the number of a reason in messages of the kernel's BFQ.
fn bfq_reason(number: u64) -> EndReason {
    match number {
        0 => EndReason::TooIdle,
        1 => EndReason::TimedOut,
        2 => EndReason::Exhausted,
        3 => EndReason::NoMoreRequests,
        4 => EndReason::Preempted,
        _ => EndReason::Unknown,
    }
}

/// Parses messages of hoistway's recordings.
fn own_note(text: &str) -> Option<NoteEvent> {
    if let Some(rest) = text.strip_prefix("slice of ") {
        let (queue, rest) = own_queue(rest)?;
        let ends = |reason| NoteEvent::Ends { queue, reason, served: None, budget: None };
        return match rest {
            rest if rest.starts_with("begins") => Some(NoteEvent::Begins(queue, None)),
            rest if rest.starts_with("is over") => Some(ends(EndReason::Unknown)),
            rest if rest.starts_with("is taken away") => Some(ends(EndReason::Preempted)),
            _ => None,
        };
    }
    if let Some(rest) = text.strip_prefix("budget of ") {
        let (queue, rest) = own_queue(rest)?;
        let (why, figures) = rest.strip_prefix("is over (")?.split_once(')')?;
        let mut figures = numbers(figures);
        return Some(NoteEvent::Ends {
            queue,
            reason: own_reason(why),
            served: figures.next(),
            budget: figures.next(),
        });
    }
    if let Some(rest) = text.strip_prefix("idle for ") {
        let (queue, rest) = rest.split_once(": ").or_else(|| rest.split_once(' '))?;
        let queue = Queue::Of(queue.parse().ok()?);
        return Some(match rest {
            "its request came" => NoteEvent::IdleEnds(queue, EndReason::RequestCame),
            "in vain" => NoteEvent::IdleEnds(queue, EndReason::TooIdle),
            _ => NoteEvent::Idles(queue),
        });
    }
    if let Some(rest) = text.strip_prefix("anticipates ") {
        return Some(NoteEvent::Idles(own_queue(rest)?.0));
    }
    if let Some(rest) = text.strip_prefix("anticipation of ") {
        let vain = rest.ends_with("in vain");
        let queue = Queue::Of(first_number(rest)?.try_into().ok()?);
        return Some(NoteEvent::IdleEnds(queue, if vain { EndReason::TooIdle } else { EndReason::RequestCame }));
    }
    if let Some(rest) = text.strip_prefix("weight of ") {
        return Some(NoteEvent::Raised(own_queue(rest)?.0, last_number(rest)?));
    }
    let (queue, rest) = own_queue(text)?;
    match rest {
        rest if rest.starts_with("preempts ") => Some(NoteEvent::Preempts(queue)),
        rest if rest.starts_with("shares the queue of ") => Some(NoteEvent::Merged(queue)),
        rest if rest.starts_with("has a queue of its own") => Some(NoteEvent::Split(queue)),
        rest if rest.starts_with("is let in while ") => Some(NoteEvent::Injected(queue)),
        _ => None,
    }
}

fn own_queue(text: &str) -> Option<(Queue, &str)> {
    let (queue, rest) = text.split_once(' ')?;
    Some((Queue::Of(queue.parse().ok()?), rest))
}

fn own_reason(text: &str) -> EndReason {
    match text {
        "too idle" => EndReason::TooIdle,
        "timed out" => EndReason::TimedOut,
        "exhausted" => EndReason::Exhausted,
        "no more requests" => EndReason::NoMoreRequests,
        "preempted" => EndReason::Preempted,
        _ => EndReason::Unknown,
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

    fn parsed(text: &str) -> Option<NoteEvent> {
        parse(text.as_bytes())
    }

    #[test]
    fn messages_of_the_kernels_bfq_are_parsed() {
        let queue = Queue::Of(2896);
        assert_eq!(
            parsed("bfq2896S set_in_service_queue, cur-budget = 1644"),
            Some(NoteEvent::Begins(queue, Some(1644)))
        );
        assert_eq!(parsed("bfq2896S bfqq_served 8 secs"), Some(NoteEvent::Served(queue, 8)));
        let ends = |queue, reason| Some(NoteEvent::Ends { queue, reason, served: None, budget: None });
        assert_eq!(parsed("bfq2896S expire (4, slow 0, num_disp 1, short_ttime 1)"), ends(queue, EndReason::Preempted));
        assert_eq!(
            parsed("bfqSHARED-S expire (2, slow 0, num_disp 9, short_ttime 1)"),
            ends(Queue::Shared, EndReason::Exhausted)
        );
        assert_eq!(
            parsed("bfq0A set_in_service_queue, cur-budget = 7"),
            Some(NoteEvent::Begins(Queue::AsyncOf(0), Some(7)))
        );
        assert_eq!(parsed("bfq dispatch requests: 1 busy queues"), None);
        assert_eq!(parsed("bfq2896S put_queue: 00000000a8d15433 2"), None);
    }

    #[test]
    fn messages_of_the_kernels_cfq_are_parsed() {
        assert_eq!(parsed("cfq12SN / set_active wl_class:0 wl_type:2"), Some(NoteEvent::Begins(Queue::Of(12), None)));
        assert_eq!(parsed("cfq12S arm_idle: 8 group_idle: 0"), Some(NoteEvent::Idles(Queue::Of(12))));
        assert_eq!(parsed("cfq12S preempt"), Some(NoteEvent::Preempts(Queue::Of(12))));
        let ended = NoteEvent::Ends { queue: Queue::Of(12), reason: EndReason::TimedOut, served: None, budget: None };
        assert_eq!(parsed("cfq12S slice expired t=1"), Some(ended));
    }

    #[test]
    fn messages_of_hoistway_are_parsed() {
        let queue = Queue::Of(5);
        assert_eq!(parsed("slice of 5 begins, level 4"), Some(NoteEvent::Begins(queue, None)));
        let over = |reason, served, budget| Some(NoteEvent::Ends { queue, reason, served, budget });
        assert_eq!(parsed("slice of 5 is taken away, 300 left"), over(EndReason::Preempted, None, None));
        assert_eq!(
            parsed("budget of 5 is over (exhausted), 16384 of 16000 sectors"),
            over(EndReason::Exhausted, Some(16384), Some(16000))
        );
        assert_eq!(parsed("idle for 5 until 8000000"), Some(NoteEvent::Idles(queue)));
        assert_eq!(parsed("idle for 5: in vain"), Some(NoteEvent::IdleEnds(queue, EndReason::TooIdle)));
        assert_eq!(parsed("5 preempts 7"), Some(NoteEvent::Preempts(queue)));
        assert_eq!(parsed("anticipation of 5 ends"), Some(NoteEvent::IdleEnds(queue, EndReason::RequestCame)));
        assert_eq!(parsed("weight of 5 times 30"), Some(NoteEvent::Raised(queue, 30)));
        assert_eq!(parsed("requests are held back"), None);
    }

    #[test]
    fn a_message_names_its_elevator() {
        assert_eq!(elevator(b"elevator kyber"), Some("kyber"));
        assert_eq!(elevator(b"bfq12S add_request 1"), Some("bfq"));
        assert_eq!(elevator(b"cfq workload slice:40"), Some("cfq"));
        assert_eq!(elevator(b"fio starts"), None);
    }
}
