// SPDX-License-Identifier: GPL-2.0-only
/*
 * The elevator's notes in blktrace.
 */
#include <linux/blktrace_api.h>

#include "notes.h"

static const char *const kinds[] = {
	[HOISTWAY_EVENT_ACTIVATE] = "activate",
	[HOISTWAY_EVENT_SLICE_SET] = "slice until",
	[HOISTWAY_EVENT_SLICE_EXPIRED] = "slice expired, left",
	[HOISTWAY_EVENT_IDLE_ARMED] = "idle until",
	[HOISTWAY_EVENT_IDLE_HIT] = "idle ended by a request",
	[HOISTWAY_EVENT_IDLE_TIMEOUT] = "idle timed out",
	[HOISTWAY_EVENT_PREEMPT] = "preempts",
	[HOISTWAY_EVENT_BATCH] = "batch",
	[HOISTWAY_EVENT_OVERDUE] = "deadline passed",
	[HOISTWAY_EVENT_ANTICIPATE] = "anticipate until",
	[HOISTWAY_EVENT_ANTICIPATION_BROKEN] = "anticipation ended",
	[HOISTWAY_EVENT_ANTICIPATION_TIMEOUT] = "anticipation timed out",
	[HOISTWAY_EVENT_CHARGE] = "charged",
	[HOISTWAY_EVENT_BUDGET_EXPIRED] = "budget ended, served",
	[HOISTWAY_EVENT_WEIGHT_RAISED] = "weight raised",
	[HOISTWAY_EVENT_QUEUES_MERGED] = "merged into the queue of",
	[HOISTWAY_EVENT_QUEUE_SPLIT] = "queue of its own",
	[HOISTWAY_EVENT_INJECTED] = "injected into the turn of",
	[HOISTWAY_EVENT_TOKEN_DEPTH] = "depth",
	[HOISTWAY_EVENT_AGED] = "aged",
	[HOISTWAY_EVENT_WORKLOAD] = "workload until",
	[HOISTWAY_EVENT_POSTPONED] = "postponed",
	[HOISTWAY_EVENT_SWEEP_BEGUN] = "sweep, bytes",
	[HOISTWAY_EVENT_DEGRADED] = "degraded, bound",
};

/* Passes the core's notes on to blktrace. Recording begins with the first call after a trace was
 * started. Call with the lock held. */
void hw_notes(struct hw_queue *hw)
{
	struct hoistway_event event;

	if (!hw->notes)
		hoistway_events_enable(hw->core, 1);
	hw->notes = true;
	while (hoistway_next_event(hw->core, &event) == HOISTWAY_OK) {
		const char *kind = event.kind < ARRAY_SIZE(kinds) ? kinds[event.kind] : NULL;

		if (kind)
			blk_add_trace_msg(hw->q, "%s %u: %s %llu (%u)", hw->type->name, event.pid, kind, event.value,
					  event.detail);
	}
}

/* The trace has ended: the core records no notes any more, and those that it has are dropped. */
void hw_notes_end(struct hw_queue *hw)
{
	struct hoistway_event event;

	hoistway_events_enable(hw->core, 0);
	while (hoistway_next_event(hw->core, &event) == HOISTWAY_OK)
		;
	hw->notes = false;
}
