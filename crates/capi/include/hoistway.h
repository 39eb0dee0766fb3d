/*
 * hoistway: Linux I/O schedulers and the request queue in which they run, for C programs.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * The caller passes in the time and events. A queue has no thread, lock or timer, reads no clock,
 * performs no I/O, and uses one block of the caller's memory; it allocates nothing else. Only one
 * thread at a time may use a queue.
 *
 *     struct hoistway_capacity capacity = {.requests = 256, .contexts = 64, .merged_bios = 1024};
 *     size_t size = hoistway_queue_size(&capacity);
 *     struct hoistway_queue *queue = aligned_alloc(HOISTWAY_ALIGNMENT, size);
 *     struct hoistway_config config;
 *     hoistway_config_default(&config);
 *     int32_t elevator = hoistway_elevator_index("cfq-v3", strlen("cfq-v3"));
 *     if (!queue || elevator < 0 ||
 *         hoistway_queue_init(queue, size, &capacity, &config, (uint32_t)elevator, now_ns) < 0)
 *             return -1;
 *
 * Call hoistway_submit() for each bio. When a call returns HOISTWAY_RUN, call hoistway_next() while
 * the device has room. Call hoistway_complete() when the device finishes a request, and
 * hoistway_timer() at the time of hoistway_next_timer(). After each of these calls, and the run
 * that it caused, call hoistway_next_work() until it returns HOISTWAY_EMPTY. A queue without
 * plugging must also be run after each bio. To end a queue, stop using it; its memory belongs to
 * the caller.
 *
 * Times are in nanoseconds of the caller's own monotonic clock. Sectors are 512 bytes. Functions
 * return 0 or more for success and a negative error; after an error nothing has changed. Null and
 * misaligned pointers are errors.
 */
#ifndef HOISTWAY_H
#define HOISTWAY_H

#ifdef __KERNEL__
#include <linux/types.h>
#else
#include <stddef.h>
#include <stdint.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* The alignment of a queue's memory, in bytes. */
#define HOISTWAY_ALIGNMENT 64

/* Return values of functions. */
enum hoistway_status {
	HOISTWAY_OK = 0,             /* success, no action needed; hoistway_next(): returned a request */
	HOISTWAY_RUN = 1,            /* success: call hoistway_next() until the device is full or no request is returned */
	HOISTWAY_WAIT = 2,           /* no request now: the elevator waits for a timer, an arrival or a completion */
	HOISTWAY_EMPTY = 3,          /* no request is queued, no timer armed, no work deferred, no event recorded */
	HOISTWAY_SEARCH = 4,         /* hoistway_prepare_merge(): the caller searches itself */
	HOISTWAY_INVALID = -1,       /* a null or misaligned pointer, a number out of range, an unknown flag */
	HOISTWAY_TOO_SMALL = -2,     /* the memory or an array is too small */
	HOISTWAY_FULL = -3,          /* the table of requests, contexts or groups is full: retry after a completion or exit */
	HOISTWAY_STALE = -4,         /* the context, group or request does not, or no longer, belong to this queue */
	HOISTWAY_BAD_EXTENT = -5,    /* the bio has no sectors, or ends beyond sector 2^64 */
	HOISTWAY_NOT_SUPPORTED = -6, /* a barrier on a device that cannot order; a reservation without the reservation layer */
	HOISTWAY_UNKNOWN = -7,       /* no elevator or tunable with this name or number */
	HOISTWAY_OUT_OF_RANGE = -8,  /* a tunable's value or a group's weight is out of its range */
	HOISTWAY_BUSY = -9,          /* a switch is in progress; the group has child groups, contexts or requests, or is the root */
	HOISTWAY_NOT_AWAKE = -10,    /* submit: the process sleeps for a request; resubmit: the process was not woken */
	HOISTWAY_NO_CAPACITY = -11   /* the device has no capacity for the reservation */
};

/* Returns the text of a status for messages, as in "the memory or an array is too small": constant,
 * never NULL. Values that are no status have a general text. */
const char *hoistway_status_text(int32_t status);

struct hoistway_queue;

/* Handles of contexts, groups and requests: opaque numbers, stale once the object no longer
 * exists. */
typedef uint64_t hoistway_context;
typedef uint64_t hoistway_group;
typedef uint64_t hoistway_request_id;

/* The maximum number of objects in a queue; each at most 2^24. */
struct hoistway_capacity {
	uint32_t requests;    /* queued, dispatched and in the device; at least 1 */
	uint32_t contexts;    /* processes, including exited ones with pending requests; at least 1 */
	uint32_t merged_bios; /* bios beyond the first of each request */
	uint32_t events;      /* trace events kept until they are read; beyond that the oldest are dropped */
	uint32_t groups;      /* groups of contexts including the root; 0: the root only */
};

/* The configuration of a queue, apart from its elevator. Start from hoistway_config_default(). */
struct hoistway_config {
	uint32_t layer;               /* kernel of the block layer: 0 2.6.18, 1 2.6.24, 2 2.6.29, 3 3.4, 4 4.19, 5 6.1 */
	uint32_t hz;                  /* ticks a second, 1 to 1000 */
	uint64_t uptime_ns;           /* the uptime at the caller's time 0 */
	uint32_t nr_requests;         /* pool size per direction, 4 or more; 0: limited by the capacity */
	uint32_t max_sectors;         /* size limit of merged requests, 1 or more */
	uint8_t plugging;             /* 1: hold requests back for up to 3 ms or until 4 wait */
	uint8_t merging;              /* 1: merge bios into queued requests */
	uint8_t refusal_ends_merging; /* 1: a request takes no more bios after one was refused because of its size */
	uint8_t ordered;              /* barriers: 0 refused, 1 by draining, 2 by ordered tags */
	uint8_t ordered_flush;        /* 1: the device has a write cache */
	uint8_t ordered_fua;          /* 1: the device supports forced unit access */
	uint16_t hw_queues;           /* hardware queues of the device, 1 to 4096 */
	uint8_t rotational;           /* 1: the device is rotational */
};

/* Operations. */
enum hoistway_op { HOISTWAY_READ = 0, HOISTWAY_WRITE = 1, HOISTWAY_FLUSH = 2, HOISTWAY_DISCARD = 3 };

/* Flags of a bio. */
enum hoistway_flags {
	HOISTWAY_SYNC = 1,    /* a write for which a process waits */
	HOISTWAY_META = 2,    /* metadata, or otherwise urgent */
	HOISTWAY_IDLE = 4,    /* a sync write that its process will follow with more writes */
	HOISTWAY_UNPLUG = 8,  /* the process will wait for the bio: unplug the queue */
	HOISTWAY_FUA = 16,    /* forced unit access: bypass the volatile write cache */
	HOISTWAY_BARRIER = 32 /* completes after all earlier and before all later requests */
};

/* Classes of I/O priority, as ionice numbers them; levels go from 0 (highest) to 7. */
enum hoistway_class {
	HOISTWAY_CLASS_NONE = 0, /* best effort at a level that follows the nice value; the level (0 to 7) is ignored */
	HOISTWAY_CLASS_RT = 1,
	HOISTWAY_CLASS_BE = 2,
	HOISTWAY_CLASS_IDLE = 3
};

/* A bio. */
struct hoistway_bio {
	uint64_t token; /* an identifier chosen by the caller, returned by the completion */
	hoistway_context context;
	uint64_t sector;
	uint32_t sectors; /* at least 1; a barrier may have 0 */
	uint16_t op;      /* HOISTWAY_READ, HOISTWAY_WRITE or HOISTWAY_DISCARD; only the queue issues flushes */
	uint16_t flags;
};

/* The bandwidth reserved by a process, or by a group for its processes together. */
struct hoistway_reservation {
	uint64_t bytes_per_second; /* 1 to 10^10 */
	uint64_t depth_bytes;      /* depth of the token bucket, 1 to 2^50; 0: the volume of half a second, or two requests */
	uint64_t request_bytes;    /* request size, 512 to 2^30 (small requests cost more); 0: 128 KiB */
};

/* The result of a submission. */
enum hoistway_what { HOISTWAY_QUEUED = 0, HOISTWAY_MERGED = 1, HOISTWAY_ASLEEP = 2 };

struct hoistway_submitted {
	hoistway_request_id request; /* 0 for HOISTWAY_ASLEEP */
	uint32_t what;
	uint32_t reserved;
};

/* A request for the device. */
struct hoistway_request {
	hoistway_request_id id;
	uint64_t token;        /* of the bio for which it was made */
	uint64_t sector;
	uint64_t submitted_ns; /* the time at which it was made */
	uint32_t sectors;
	uint32_t pid;
	uint16_t op;
	uint16_t flags;
	uint32_t bios_max;     /* the maximum number of tokens that its completion writes */
};

/* The kinds of deferred work. */
enum hoistway_work_what {
	HOISTWAY_WORK_RUN = 0, /* run the queue, as for HOISTWAY_RUN */
	HOISTWAY_WORK_WAKE = 1 /* the process of `context` was woken: hoistway_resubmit() its bio */
};

struct hoistway_work {
	uint32_t what;
	uint32_t reserved;
	hoistway_context context;
};

/* A tunable of an elevator, in the kernel's unit. The name has `name_len` bytes without a
 * terminating zero and is static. */
struct hoistway_tunable {
	const char *name;
	size_t name_len;
	int64_t value;
	int64_t default_value;
	int64_t min;
	int64_t max;
};

/* Trace events. Those marked [io] have token, sector, sectors, pid, and the operation in detail.
 * Unused fields are 0. */
enum hoistway_event_kind {
	HOISTWAY_EVENT_QUEUE = 1,                 /* [io] a bio was submitted */
	HOISTWAY_EVENT_GET = 2,                   /* [io] a request was allocated */
	HOISTWAY_EVENT_SLEEP = 3,                 /* [io] a process sleeps until a request can be allocated */
	HOISTWAY_EVENT_BACK_MERGE = 4,            /* [io] a bio was merged to the end of request `value` */
	HOISTWAY_EVENT_FRONT_MERGE = 5,           /* [io] a bio was merged to the front of request `value` */
	HOISTWAY_EVENT_JOIN = 6,                  /* [io] a queued request was merged into its lower neighbour `value` */
	HOISTWAY_EVENT_INSERT = 7,                /* [io] a request was inserted into the elevator */
	HOISTWAY_EVENT_PLUG = 8,                  /* the queue was plugged */
	HOISTWAY_EVENT_UNPLUG = 9,                /* the queue was unplugged while `value` requests waited */
	HOISTWAY_EVENT_UNPLUG_TIMER = 10,         /* the unplug timer fired */
	HOISTWAY_EVENT_ISSUE = 11,                /* [io] the driver took a request */
	HOISTWAY_EVENT_REQUEUE = 12,              /* [io] the driver returned a request */
	HOISTWAY_EVENT_COMPLETE = 13,             /* [io] a request completed */
	HOISTWAY_EVENT_ACTIVATE = 32,             /* the queue of `pid` became active; detail is its level */
	HOISTWAY_EVENT_SLICE_SET = 33,            /* the slice of the queue ends at `value` ns */
	HOISTWAY_EVENT_SLICE_EXPIRED = 34,        /* the queue expired with `value` ns left; detail 1: preempted */
	HOISTWAY_EVENT_IDLE_ARMED = 35,           /* the disk is kept idle for the queue until `value` ns */
	HOISTWAY_EVENT_IDLE_HIT = 36,             /* the queue's next request ended the wait */
	HOISTWAY_EVENT_IDLE_TIMEOUT = 37,         /* the wait timed out */
	HOISTWAY_EVENT_PREEMPT = 38,              /* the queue preempted the queue of process `value` */
	HOISTWAY_EVENT_BATCH = 39,                /* a batch began; detail is its operation */
	HOISTWAY_EVENT_OVERDUE = 40,              /* request `token` was dispatched out of order: its deadline had passed */
	HOISTWAY_EVENT_ANTICIPATE = 41,           /* the elevator waits for process `pid` until `value` ns */
	HOISTWAY_EVENT_ANTICIPATION_BROKEN = 42,  /* anticipation ended early */
	HOISTWAY_EVENT_ANTICIPATION_TIMEOUT = 43, /* anticipation timed out */
	HOISTWAY_EVENT_SWITCHED = 44,             /* elevator number `detail` is current now */
	HOISTWAY_EVENT_CHARGE = 45,               /* the queue was charged `value`, in the elevator's own unit */
	HOISTWAY_EVENT_BUDGET_EXPIRED = 46,       /* `value` sectors of a budget of `sectors` were served; `detail` is the reason for its end:
	                                             0 idle for too long, 1 timed out, 2 exhausted, 3 no more requests, 4 preempted */
	HOISTWAY_EVENT_WEIGHT_RAISED = 47,        /* the queue's weight is multiplied by `detail`; 1 ends the raising */
	HOISTWAY_EVENT_QUEUES_MERGED = 48,        /* the queue was merged into that of process `value` */
	HOISTWAY_EVENT_QUEUE_SPLIT = 49,          /* the process received a queue of its own again */
	HOISTWAY_EVENT_INJECTED = 50,             /* a request of the queue was injected while that of process `value` is active */
	HOISTWAY_EVENT_TOKEN_DEPTH = 51,          /* requests of kind `detail` (0 reads, 1 writes, 2 discards, 3 others) may have
	                                             `value` in the device */
	HOISTWAY_EVENT_AGED = 52,                 /* request `token` preceded those of a higher class because of its age */
	HOISTWAY_EVENT_WORKLOAD = 53,             /* class `detail` / 256 (1 RT, 2 BE, 3 idle), kind `detail` % 256 (0 async, 1 sync
	                                             without idling, 2 sync) are served until `value` ns */
	HOISTWAY_EVENT_POSTPONED = 54,            /* requests are held back, async ones or one of a reserving process */
	HOISTWAY_EVENT_SWEEP_BEGUN = 55,          /* a sweep over `value` bytes of reserving processes began */
	HOISTWAY_EVENT_DEGRADED = 56              /* three consecutive sweeps took longer than the bound of `value` ns */
};

struct hoistway_event {
	uint64_t time_ns;
	uint64_t token;
	uint64_t sector;
	uint64_t value;
	uint32_t kind;
	uint32_t pid;
	uint32_t sectors;
	uint32_t detail;
};

/* --- creating a queue --- */

/* Returns the size in bytes of a queue of this capacity, a multiple of HOISTWAY_ALIGNMENT; 0 if the
 * capacity is out of range. */
size_t hoistway_queue_size(const struct hoistway_capacity *capacity);

/* Writes the defaults: a 2.6.18 queue with plugging, merging up to 512 KiB and 128 requests per
 * direction. */
int32_t hoistway_config_default(struct hoistway_config *config);

/* Add this to an elevator's index on creation or switch of a queue: processes and groups can
 * then reserve bandwidth with any elevator. ("cfq-bw" is this layer over "cfq-v3".) */
#define HOISTWAY_RESERVING (1u << 16)

/* Add this to an elevator's index for a queue that keeps its elevator: it has room for the
 * tables of that elevator only, and hoistway_switch() answers NOT_SUPPORTED.
 * hoistway_fixed_queue_size() returns the size of such a queue; 0 also without this bit. */
#define HOISTWAY_FIXED (1u << 17)
size_t hoistway_fixed_queue_size(const struct hoistway_capacity *capacity, uint32_t elevator);

/* Creates a queue in `memory`, which must be aligned to HOISTWAY_ALIGNMENT and must not move.
 * INVALID, TOO_SMALL, UNKNOWN. */
int32_t hoistway_queue_init(struct hoistway_queue *memory, size_t size, const struct hoistway_capacity *capacity,
                            const struct hoistway_config *config, uint32_t elevator, uint64_t now_ns);

/* --- elevators and tunables --- */

/* Returns the number of elevators; their indices start at 0. */
uint32_t hoistway_elevator_count(void);

/* Returns the index of an elevator by name or alias. UNKNOWN. */
int32_t hoistway_elevator_index(const char *name, size_t len);

/* Writes the name of an elevator and a zero; returns the length of the name. UNKNOWN, TOO_SMALL. */
int32_t hoistway_elevator_name(uint32_t elevator, char *buffer, size_t len);

/* Returns the index of the current elevator. */
int32_t hoistway_elevator(struct hoistway_queue *queue);

/* Returns 1 if the current elevator supports reservations, otherwise 0. */
int32_t hoistway_is_reserving(struct hoistway_queue *queue);

/* Returns the number of tunables of the current elevator; indices start at 0. With
 * HOISTWAY_RESERVING those of reservations come first. */
int32_t hoistway_tunable_count(struct hoistway_queue *queue);

/* Writes a tunable and its value. UNKNOWN. */
int32_t hoistway_tunable(struct hoistway_queue *queue, uint32_t index, struct hoistway_tunable *tunable);

/* Sets a tunable. UNKNOWN, OUT_OF_RANGE. */
int32_t hoistway_set_tunable(struct hoistway_queue *queue, uint32_t index, int64_t value);
int32_t hoistway_set_tunable_by_name(struct hoistway_queue *queue, const char *name, size_t len, int64_t value);

/* Begins to switch to another elevator: the old one is drained, then the new one is attached
 * with default tunables. Adding or removing HOISTWAY_RESERVING is a switch, too; reservations
 * end with it. BUSY, UNKNOWN. */
int32_t hoistway_switch(struct hoistway_queue *queue, uint32_t elevator, uint64_t now_ns);

/* Returns 1 while a switch waits for the old elevator's last request, otherwise 0. */
int32_t hoistway_is_switching(struct hoistway_queue *queue);

/* --- processes --- */

/* Creates a context for a process. INVALID, FULL. */
int32_t hoistway_context_create(struct hoistway_queue *queue, uint32_t pid, uint32_t class_, uint32_t level, int8_t nice,
                                hoistway_context *context);

/* Ends a context because its process exits; pending requests are still served. STALE. */
int32_t hoistway_context_exit(struct hoistway_queue *queue, hoistway_context context, uint64_t now_ns);

/* Sets a context's priority, or its nice value, from which a priority of class NONE follows.
 * INVALID, STALE. */
int32_t hoistway_context_set_priority(struct hoistway_queue *queue, hoistway_context context, uint32_t class_, uint32_t level,
                                      uint64_t now_ns);
int32_t hoistway_context_set_nice(struct hoistway_queue *queue, hoistway_context context, int8_t nice, uint64_t now_ns);

/* Sets the CPU scheduling policy of a context's process, from which a priority of class NONE
 * takes its class from 2.6.26 on: 0 normal, 1 real time (SCHED_FIFO, SCHED_RR), 2 idle
 * (SCHED_IDLE). INVALID, STALE. */
int32_t hoistway_context_set_cpu_policy(struct hoistway_queue *queue, hoistway_context context, uint32_t policy,
                                        uint64_t now_ns);

/* Sets the CPU on which a context's process runs, 0 to 65535; multi-queue elevators file its
 * requests by CPU. INVALID, STALE. */
int32_t hoistway_context_set_cpu(struct hoistway_queue *queue, hoistway_context context, uint32_t cpu);

/* --- groups --- */

/* The range of a group's weights: the weight among its parent's other groups and processes, and
 * (CFQ's final form) the leaf weight of its own processes against its child groups. Elevators
 * without groups treat all processes as one group. */
enum hoistway_weight { HOISTWAY_WEIGHT_MIN = 1, HOISTWAY_WEIGHT_DEFAULT = 100, HOISTWAY_WEIGHT_MAX = 1000 };

/* Writes the root group, to which new contexts belong. INVALID. */
int32_t hoistway_group_root(struct hoistway_queue *queue, hoistway_group *group);

/* Creates a group below `parent`. INVALID, STALE, OUT_OF_RANGE, FULL (the root counts). */
int32_t hoistway_group_create(struct hoistway_queue *queue, hoistway_group parent, uint32_t weight, uint32_t leaf_weight,
                              uint64_t now_ns, hoistway_group *group);

/* Changes a group's weights. STALE, OUT_OF_RANGE. */
int32_t hoistway_group_set_weights(struct hoistway_queue *queue, hoistway_group group, uint32_t weight, uint32_t leaf_weight,
                                   uint64_t now_ns);

/* Removes a group. STALE; BUSY while it has child groups, contexts or requests. */
int32_t hoistway_group_remove(struct hoistway_queue *queue, hoistway_group group, uint64_t now_ns);

/* Moves a process to a group. As in the kernel, the elevator notices when it next accesses the
 * process. STALE. */
int32_t hoistway_context_move(struct hoistway_queue *queue, hoistway_context context, hoistway_group group, uint64_t now_ns);

/* --- reserved bandwidth --- */

/* Reserves bandwidth for a process, or changes its reservation, with HOISTWAY_RESERVING or
 * "cfq-bw". A reduction is always granted. The reservation ends with hoistway_release(), the
 * process, or a switch. After NO_CAPACITY `headroom` has the available bandwidth in bytes a
 * second. INVALID, STALE, NOT_SUPPORTED, NO_CAPACITY. */
int32_t hoistway_reserve(struct hoistway_queue *queue, hoistway_context context, const struct hoistway_reservation *reservation,
                         uint64_t now_ns, uint64_t *headroom);
int32_t hoistway_release(struct hoistway_queue *queue, hoistway_context context, uint64_t now_ns);

/* Reserves bandwidth for the processes of a group together, without those of its child groups. A
 * process with its own reservation uses only that. The reservation ends with
 * hoistway_group_release(), the group, or a switch. */
int32_t hoistway_group_reserve(struct hoistway_queue *queue, hoistway_group group, const struct hoistway_reservation *reservation,
                               uint64_t now_ns, uint64_t *headroom);
int32_t hoistway_group_release(struct hoistway_queue *queue, hoistway_group group, uint64_t now_ns);

/* --- requests --- */

/* Submits a bio of a process. INVALID, FULL, STALE, BAD_EXTENT, NOT_SUPPORTED, NOT_AWAKE. After
 * HOISTWAY_ASLEEP the process submits no bio until it is woken (HOISTWAY_WORK_WAKE), and then
 * this bio again with hoistway_resubmit(). */
int32_t hoistway_submit(struct hoistway_queue *queue, const struct hoistway_bio *bio, uint64_t now_ns,
                        struct hoistway_submitted *submitted);
int32_t hoistway_resubmit(struct hoistway_queue *queue, const struct hoistway_bio *bio, uint64_t now_ns,
                          struct hoistway_submitted *submitted);

/* Unplugs the queue because a process waits for pending I/O. */
int32_t hoistway_unplug(struct hoistway_queue *queue, uint64_t now_ns);

/* Returns the next request, which the device takes by this call (OK), or WAIT, or EMPTY. */
int32_t hoistway_next(struct hoistway_queue *queue, uint64_t now_ns, struct hoistway_request *request);

/* Returns the next request for one hardware queue, 0 to the configured number less 1. Elevators
 * with a single queue behave as with hoistway_next(). INVALID. */
int32_t hoistway_next_for(struct hoistway_queue *queue, uint32_t hw_queue, uint64_t now_ns, struct hoistway_request *request);

/* Completes a request: writes the tokens of its bios and their number. `len` must be at least
 * the request's bios_max. STALE, TOO_SMALL. */
int32_t hoistway_complete(struct hoistway_queue *queue, hoistway_request_id request, uint64_t now_ns, uint64_t *tokens,
                          uint32_t len, uint32_t *count);

/* Returns an unserved request to the queue, which issues it first. Run the queue when the device
 * can take it. STALE. */
int32_t hoistway_requeue(struct hoistway_queue *queue, hoistway_request_id request, uint64_t now_ns);

/* Returns the number of requests in the device. */
int32_t hoistway_in_flight(struct hoistway_queue *queue);

/* --- merges that the caller makes --- */

/* A caller that merges bios and requests itself, as the kernel's block layer does, configures
 * the queue with `merging` 0, `plugging` 0 and `nr_requests` 0, submits one bio for each new
 * request, and reports its merges. Extents are those of the caller's requests. */

/* A queued request that may be merged with a bio or another request; `side` says where the bio
 * belongs. */
enum hoistway_side { HOISTWAY_BACK = 0, HOISTWAY_FRONT = 1 };

struct hoistway_neighbour {
	hoistway_request_id request;
	uint64_t token;
	uint32_t side;
	uint32_t reserved;
};

struct hoistway_extent {
	uint64_t sector;
	uint32_t sectors;
	uint32_t reserved;
};

/* Begins the search for a request for a bio; call it before the others. Returns SEARCH: the
 * caller tries the request that merged last, then one that ends at the bio's start, then
 * hoistway_find_merge(). OK: the elevator searched itself and found this one, which is the only
 * candidate. EMPTY: there is none. INVALID. */
int32_t hoistway_prepare_merge(struct hoistway_queue *queue, const struct hoistway_bio *bio, uint64_t now_ns,
                               struct hoistway_neighbour *found);

/* Returns 1 if the caller may merge requests that are about to be inserted; 0 if the elevator
 * searches itself, or a process or group has a reservation. INVALID. */
int32_t hoistway_joins_at_insert(struct hoistway_queue *queue);

/* Excludes a queued request from further merges: the result of one would have been too large.
 * INVALID, STALE. */
int32_t hoistway_record_refusal(struct hoistway_queue *queue, hoistway_request_id request);

/* Returns 1 if the elevator allows the merge of the bio into a queued request, otherwise 0.
 * INVALID. */
int32_t hoistway_allows_merge(struct hoistway_queue *queue, hoistway_request_id request, const struct hoistway_bio *bio,
                              uint64_t now_ns);

/* Searches the elevator for a queued request for the bio (OK), or returns EMPTY. Most elevators
 * find requests that begin at the bio's end; the caller searches for those that end at its
 * start. INVALID. */
int32_t hoistway_find_merge(struct hoistway_queue *queue, const struct hoistway_bio *bio, uint64_t now_ns,
                            struct hoistway_neighbour *found);

/* Writes the next higher (BACK) or lower (FRONT) queued request that may be merged with this one
 * (OK), or returns EMPTY. INVALID. */
int32_t hoistway_neighbour(struct hoistway_queue *queue, hoistway_request_id request, uint32_t side,
                           struct hoistway_neighbour *found);

/* Reports that a bio was merged into a queued request, which has this extent now and was not
 * merged with a neighbour. INVALID, STALE, BAD_EXTENT. */
int32_t hoistway_record_growth(struct hoistway_queue *queue, hoistway_request_id request, uint32_t side,
                               const struct hoistway_extent *extent, uint64_t now_ns);

/* Reports that a queued request was merged into its lower neighbour. extents[0] is that of the
 * result, extents[1] that of the absorbed request before. The handle of the absorbed request is
 * stale then. INVALID, STALE, BAD_EXTENT. */
int32_t hoistway_record_join(struct hoistway_queue *queue, hoistway_request_id request, hoistway_request_id absorbed,
                             const struct hoistway_extent extents[2], uint64_t now_ns);

/* Reports that a request that was about to be inserted, described by `bio`, was merged into the
 * end of a queued one, which has this extent now. INVALID, STALE, BAD_EXTENT, FULL. */
int32_t hoistway_record_join_at_insert(struct hoistway_queue *queue, hoistway_request_id request,
                                       const struct hoistway_extent *extent, const struct hoistway_bio *bio, uint64_t now_ns);

/* Returns how many of `nr_requests` the caller may have while it allocates one for this bio; its
 * context may be 0. INVALID. */
int32_t hoistway_depth_limit(struct hoistway_queue *queue, uint32_t nr_requests, const struct hoistway_bio *bio);

/* Writes the tokens of at most `len` requests with which the caller must not merge any more,
 * because their order is decided; returns the number of such requests. A request becomes one of
 * them in hoistway_next(). INVALID. */
int32_t hoistway_dispatched(struct hoistway_queue *queue, uint64_t *tokens, uint32_t len);

/* --- time and deferred work --- */

/* Writes the time of the next hoistway_timer() call (OK), or returns EMPTY. */
int32_t hoistway_next_timer(struct hoistway_queue *queue, uint64_t *at_ns);

/* Fires the first due timer, if any. Repeat while hoistway_next_timer() is not in the future. */
int32_t hoistway_timer(struct hoistway_queue *queue, uint64_t now_ns);

/* Takes the oldest item of deferred work (OK), or returns EMPTY. */
int32_t hoistway_next_work(struct hoistway_queue *queue, struct hoistway_work *work);

/* What hoistway_pending() returns, as a sum. */
enum hoistway_pending_bits {
	HOISTWAY_PENDING_WORK = 1,      /* hoistway_next_work() */
	HOISTWAY_PENDING_TIMER = 2,     /* hoistway_next_timer() */
	HOISTWAY_PENDING_DISPATCHED = 4 /* hoistway_dispatched() */
};

/* Returns which of these functions have something to return; it costs less than calls of them.
 * INVALID. */
int32_t hoistway_pending(struct hoistway_queue *queue);

/* --- trace --- */

/* Takes the oldest event (OK), or returns EMPTY. */
int32_t hoistway_next_event(struct hoistway_queue *queue, struct hoistway_event *event);

/* Starts or stops the recording of events, which is on at first. */
int32_t hoistway_events_enable(struct hoistway_queue *queue, uint32_t on);

/* Returns the number of events dropped because the ring was full. */
uint64_t hoistway_events_dropped(struct hoistway_queue *queue);

#ifdef __cplusplus
}
#endif

#endif
