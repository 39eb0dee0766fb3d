/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The recording of a queue: each call of the core with its arguments and its answer, in the order
 * of the calls. hoistway conform replays it.
 *
 * A recording is a header of 64 bytes and records of 64 bytes, all numbers little-endian. The words
 * a[] and n[] of each call are described beside its number. docs/conformance.md has the format.
 */
#ifndef HOISTWAY_RECORD_H
#define HOISTWAY_RECORD_H

#include <linux/build_bug.h>

#include "hoistway_iosched.h"

#define HW_RECORD_MAGIC "HWYCALLS"
#define HW_RECORD_VERSION 1
#define HW_RECORD_NO_HW_QUEUE (~0ULL)

enum hw_record_call {
	/* A new queue of the core, in these records: at first, and after a change of nr_requests. */
	HW_RECORD_QUEUE = 1,   /* a: requests and contexts, merged bios and events, groups and elevator (low and
				  high halves), the root group; n: tunables; time: of the creation */
	HW_RECORD_CONFIG = 2,  /* a: layer and hz, nr_requests and max_sectors (low and high halves), uptime_ns, bytes
				  plugging, merging, refusal_ends_merging, ordered, ordered_flush, ordered_fua,
				  rotational; n: hw_queues */
	HW_RECORD_NAME = 3,    /* a: the elevator's name and the module's version, 16 bytes each */
	HW_RECORD_TUNABLE = 4, /* a: the name, 32 bytes; token: the value; n: the index */
	/* The end: without it the recording was read while it was made. */
	HW_RECORD_END = 5, /* a: lost records, records without the header and this one */

	HW_RECORD_SUBMIT = 16,        /* a: context, sector, request; n: sectors, what; token, op, flags */
	HW_RECORD_REQUEUE = 17,       /* a: request */
	HW_RECORD_NEXT = 18,          /* a: request, sector, submitted_ns, hardware queue; n: sectors, pid; token, op, flags */
	HW_RECORD_COMPLETE = 19,      /* a: request; n: tokens; token */
	HW_RECORD_ALLOWS_MERGE = 20,  /* a: request, context, sector; n: sectors; op, flags */
	HW_RECORD_FIND_MERGE = 21,    /* a: found request, context, sector; n: sectors, found side; token: found; op, flags */
	HW_RECORD_NEIGHBOUR = 22,     /* a: request, found request; n: 0, side; token: found */
	HW_RECORD_GROWTH = 23,        /* a: request, sector; n: sectors, side */
	HW_RECORD_JOIN = 24,          /* a: request, absorbed, sector, absorbed sector; n: sectors, absorbed sectors */
	HW_RECORD_INSERT_JOIN = 25,   /* a: request, sector, context, bio's sector; n: sectors, bio's sectors; token, op, flags */
	HW_RECORD_DISPATCHED = 26,    /* n: listed requests, index of this one; token; one record each, or one for none */
	HW_RECORD_NEXT_TIMER = 27,    /* a: time */
	HW_RECORD_TIMER = 28,
	HW_RECORD_NEXT_WORK = 29,     /* a: context; n: what */
	HW_RECORD_CONTEXT = 30,       /* a: context; n: pid */
	HW_RECORD_EXIT = 31,          /* a: context */
	HW_RECORD_PRIORITY = 32,      /* a: context; n: class, level */
	HW_RECORD_CPU = 33,           /* a: context; n: cpu */
	HW_RECORD_MOVE = 34,          /* a: context, group */
	HW_RECORD_GROUP = 35,         /* a: parent, group; n: weight */
	HW_RECORD_WEIGHTS = 36,       /* a: group; n: weight */
	HW_RECORD_GROUP_REMOVE = 37,  /* a: group */
	HW_RECORD_SET_TUNABLE = 38,   /* a: value; n: index */
	HW_RECORD_DEPTH_LIMIT = 39,   /* a: context, sector, sectors; n: nr_requests, limit; op, flags */
	HW_RECORD_PREPARE_MERGE = 40, /* as HW_RECORD_FIND_MERGE */
	HW_RECORD_JOINS = 41,         /* whether requests may be merged at insertion: the status */
	HW_RECORD_RESERVE = 42,       /* a: context, bytes a second, depth, size of requests */
	HW_RECORD_RELEASE = 43,       /* a: context */
	HW_RECORD_GROUP_RESERVE = 44, /* a: group, bytes a second, depth, size of requests */
	HW_RECORD_GROUP_RELEASE = 45, /* a: group */
};

struct hw_record {
	u64 time;     /* in ns; calls without a time have that of the call before */
	s16 status;   /* the return value; 0 for those that return a number */
	u16 sequence; /* the number of the record, the low 16 bits; the header has number 0 */
	u8 call;      /* enum hw_record_call */
	u8 op;
	u16 flags;
	u64 a[4];
	u64 token; /* changed by a secret number, so that a recording holds no addresses of the kernel */
	u32 n[2];
};
static_assert(sizeof(struct hw_record) == 64);

struct hw_record_header {
	char magic[8];
	u16 version;
	u16 record_size;
	u32 hz;
	u64 realtime_ns; /* the time of day at the start */
	char disk[32];
	u64 reserved;
};
static_assert(sizeof(struct hw_record_header) == 64);

#ifdef HW_RECORDER

void hw_record(struct hw_queue *hw, struct hw_record record);
void hw_record_bio(struct hw_queue *hw, struct hw_record record, const struct hoistway_bio *bio);
void hw_record_attach(struct hw_queue *hw);
void hw_record_created(struct hw_queue *hw, const struct hoistway_capacity *capacity,
		       const struct hoistway_config *config, u64 now);
void hw_record_begin(struct hw_queue *hw);
void hw_record_end(struct hw_queue *hw);
void hw_record_init(void);
void hw_record_exit(void);

/* Records a call if the queue is recorded. Use with the lock held. */
#define HW_RECORD(hw, number, ...)								\
	do {											\
		if (unlikely((hw)->recorder))							\
			hw_record(hw, (struct hw_record){ .call = HW_RECORD_##number, __VA_ARGS__ });	\
	} while (0)

/* Records a call with the operation and the flags of a bio. */
#define HW_RECORD_BIO(hw, number, bio, ...)							\
	do {											\
		if (unlikely((hw)->recorder))							\
			hw_record_bio(hw, (struct hw_record){ .call = HW_RECORD_##number, __VA_ARGS__ }, bio); \
	} while (0)

#else

#define HW_RECORD(hw, number, ...) do { } while (0)
#define HW_RECORD_BIO(hw, number, bio, ...) do { } while (0)

static inline void hw_record_attach(struct hw_queue *hw) { }
static inline void hw_record_created(struct hw_queue *hw, const struct hoistway_capacity *capacity,
				     const struct hoistway_config *config, u64 now) { }
static inline void hw_record_begin(struct hw_queue *hw) { }
static inline void hw_record_end(struct hw_queue *hw) { }
static inline void hw_record_init(void) { }
static inline void hw_record_exit(void) { }

#endif

#endif
