/*
 * hoistway: Linux's I/O schedulers and the request queue that they work in, for C programs.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * A queue is told the time and given events. It owns no thread, lock or timer, reads no clock, does no I/O, and lives in one block
 * of the caller's memory; nothing else is allocated. One thread at a time may use a queue.
 *
 *     struct hoistway_capacity capacity = {.requests = 256, .contexts = 64, .merged_bios = 1024, .events = 0};
 *     size_t size = hoistway_queue_size(&capacity);
 *     struct hoistway_queue *queue = aligned_alloc(HOISTWAY_ALIGNMENT, size);
 *     struct hoistway_config config;
 *     hoistway_config_default(&config);
 *     int elevator = hoistway_elevator_index("cfq-v3", 6);
 *     hoistway_queue_init(queue, size, &capacity, &config, elevator, now_ns);
 *
 * Then hoistway_submit() for each bio; hoistway_next() while the device has room, when a call answers HOISTWAY_RUN;
 * hoistway_complete() as the device finishes; hoistway_timer() when the time of hoistway_next_timer() has come. After each of
 * these, and after the run that it asked for, hoistway_next_work() until it answers HOISTWAY_EMPTY. A queue without plugging is
 * also run after each bio. To end a queue, stop using it; its memory is the caller's.
 *
 * Times are in nanoseconds of the caller's own monotonic clock. Sectors are 512 bytes. Functions answer 0 or more for success and
 * an error below 0; after an error nothing has changed. Null and badly aligned pointers are errors.
 */
#ifndef HOISTWAY_H
#define HOISTWAY_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The alignment of a queue's memory, in bytes. */
#define HOISTWAY_ALIGNMENT 64

/* What functions answer. */
enum hoistway_status {
	HOISTWAY_OK = 0,             /* done, nothing to do; from hoistway_next(): here is a request */
	HOISTWAY_RUN = 1,            /* done: now call hoistway_next() until the device is full or nothing comes */
	HOISTWAY_WAIT = 2,           /* nothing now: the elevator waits for a timer, an arrival or a completion */
	HOISTWAY_EMPTY = 3,          /* nothing is queued, armed, deferred or recorded */
	HOISTWAY_INVALID = -1,       /* a bad pointer, a number out of range, an unknown flag */
	HOISTWAY_TOO_SMALL = -2,     /* the memory or an array is too small */
	HOISTWAY_FULL = -3,          /* the table of requests, contexts or groups is full: try again after a completion, an exit ... */
	HOISTWAY_STALE = -4,         /* the context, group or request is not, or no longer, one of this queue's */
	HOISTWAY_BAD_EXTENT = -5,    /* the bio has no sectors, or ends beyond sector 2^64 */
	HOISTWAY_NOT_SUPPORTED = -6, /* a barrier for a device that cannot order; a reservation where nothing can be reserved */
	HOISTWAY_UNKNOWN = -7,       /* no elevator or tunable of this name or number */
	HOISTWAY_OUT_OF_RANGE = -8,  /* a tunable's value or a group's weight is out of its range */
	HOISTWAY_BUSY = -9,          /* a switch is under way; the group has child groups, contexts or requests, or is the root */
	HOISTWAY_NOT_AWAKE = -10,    /* submit: the process sleeps for a request; resubmit: it was not woken */
	HOISTWAY_NO_CAPACITY = -11   /* the device cannot keep one more promise of this size */
};

struct hoistway_queue;

/* Handles of contexts, groups and requests: opaque numbers, stale once what they name has gone. */
typedef uint64_t hoistway_context;
typedef uint64_t hoistway_group;
typedef uint64_t hoistway_request_id;

/* How much a queue holds at once; each at most 2^24. */
struct hoistway_capacity {
	uint32_t requests;    /* queued, dispatched and in the device; at least 1 */
	uint32_t contexts;    /* processes, those included that have exited with requests under way; at least 1 */
	uint32_t merged_bios; /* bios beyond the first of each request */
	uint32_t events;      /* trace events kept until they are read; the oldest are dropped */
	uint32_t groups;      /* groups of contexts, the root included; 0: the root alone */
};

/* How a queue behaves, beside its elevator. Start from hoistway_config_default(). */
struct hoistway_config {
	uint32_t layer;               /* whose block layer: 0 2.6.18, 1 2.6.24, 2 2.6.29, 3 3.4, 4 4.19, 5 6.1 */
	uint32_t hz;                  /* ticks a second, 1 to 1000 */
	uint64_t uptime_ns;           /* how long the machine had been up at the caller's time 0 */
	uint32_t nr_requests;         /* requests a direction, 4 or more; 0: as many as there is room for */
	uint32_t max_sectors;         /* the largest request that merging makes, 1 or more */
	uint8_t plugging;             /* 1: hold requests back for up to 3 ms or until 4 wait */
	uint8_t merging;              /* 1: merge bios into queued requests */
	uint8_t refusal_ends_merging; /* 1: a request that a bio was refused for size takes no more */
	uint8_t ordered;              /* barriers: 0 refused, 1 by draining, 2 by ordered tags */
	uint8_t ordered_flush;        /* 1: the device has a write cache */
	uint8_t ordered_fua;          /* 1: it can write a single request through */
	uint16_t hw_queues;           /* hardware queues of the device, 1 to 4096 */
	uint8_t rotational;           /* 1: the device has an arm that moves */
};

/* Operations. */
enum hoistway_op { HOISTWAY_READ = 0, HOISTWAY_WRITE = 1, HOISTWAY_FLUSH = 2, HOISTWAY_DISCARD = 3 };

/* Marks of a bio. */
enum hoistway_flags {
	HOISTWAY_SYNC = 1,    /* a write that somebody waits for */
	HOISTWAY_META = 2,    /* metadata, or otherwise urgent */
	HOISTWAY_IDLE = 4,    /* a sync write whose writer will write more */
	HOISTWAY_UNPLUG = 8,  /* the submitter is about to wait */
	HOISTWAY_FUA = 16,    /* to the medium, past the write cache */
	HOISTWAY_BARRIER = 32 /* everything before it is done before, everything after it after */
};

/* Classes of I/O priority, as ionice numbers them; levels go from 0 (best) to 7. */
enum hoistway_class {
	HOISTWAY_CLASS_NONE = 0, /* best effort at a level that follows nice; level 0 to 7, not used */
	HOISTWAY_CLASS_RT = 1,
	HOISTWAY_CLASS_BE = 2,
	HOISTWAY_CLASS_IDLE = 3
};

/* A bio. */
struct hoistway_bio {
	uint64_t token; /* the caller's own name for it, which comes back when it completes */
	hoistway_context context;
	uint64_t sector;
	uint32_t sectors; /* at least 1; a barrier may have 0 */
	uint16_t op;      /* HOISTWAY_READ, HOISTWAY_WRITE or HOISTWAY_DISCARD; only the queue makes a flush */
	uint16_t flags;
};

/* The bandwidth that a process reserves, or a group for its processes together. */
struct hoistway_reservation {
	uint64_t bytes_per_second; /* 1 to 10^10 */
	uint64_t depth_bytes;      /* what it may have at once after a pause, 1 to 2^50; 0: what comes in half a second, or two requests */
	uint64_t request_bytes;    /* the size of its requests, 512 to 2^30: small ones cost more; 0: 128 KiB */
};

/* What became of a bio. */
enum hoistway_what { HOISTWAY_QUEUED = 0, HOISTWAY_MERGED = 1, HOISTWAY_ASLEEP = 2 };

struct hoistway_submitted {
	hoistway_request_id request; /* 0 for HOISTWAY_ASLEEP */
	uint32_t what;
	uint32_t reserved;
};

/* A request for the device. */
struct hoistway_request {
	hoistway_request_id id;
	uint64_t token;        /* of the bio that it was made for */
	uint64_t sector;
	uint64_t submitted_ns; /* when it was made */
	uint32_t sectors;
	uint32_t pid;
	uint16_t op;
	uint16_t flags;
	uint32_t bios_max;     /* the most tokens that its completion can write */
};

/* A piece of deferred work. */
enum hoistway_work_what {
	HOISTWAY_WORK_RUN = 0, /* run the queue, as for HOISTWAY_RUN */
	HOISTWAY_WORK_WAKE = 1 /* the process of `context` may go on: hoistway_resubmit() its bio */
};

struct hoistway_work {
	uint32_t what;
	uint32_t reserved;
	hoistway_context context;
};

/* A tunable of an elevator, in the kernel's unit. The name has `name_len` bytes, no zero at the end, and lives for ever. */
struct hoistway_tunable {
	const char *name;
	size_t name_len;
	int64_t value;
	int64_t default_value;
	int64_t min;
	int64_t max;
};

/* Trace events. Those marked [io] have token, sector, sectors, pid, and the operation in detail. Unused fields are 0. */
enum hoistway_event_kind {
	HOISTWAY_EVENT_QUEUE = 1,                 /* [io] a bio was submitted */
	HOISTWAY_EVENT_GET = 2,                   /* [io] a request was allocated */
	HOISTWAY_EVENT_SLEEP = 3,                 /* [io] its process sleeps until a request is free */
	HOISTWAY_EVENT_BACK_MERGE = 4,            /* [io] a bio was merged to the end of request `value` */
	HOISTWAY_EVENT_FRONT_MERGE = 5,           /* [io] a bio was merged to its front */
	HOISTWAY_EVENT_JOIN = 6,                  /* [io] a queued request became part of its lower neighbour `value` */
	HOISTWAY_EVENT_INSERT = 7,                /* [io] a request went to the elevator */
	HOISTWAY_EVENT_PLUG = 8,                  /* the queue was plugged */
	HOISTWAY_EVENT_UNPLUG = 9,                /* it was unplugged while `value` requests waited */
	HOISTWAY_EVENT_UNPLUG_TIMER = 10,         /* the unplug timer fired */
	HOISTWAY_EVENT_ISSUE = 11,                /* [io] the driver took a request */
	HOISTWAY_EVENT_REQUEUE = 12,              /* [io] the driver gave it back */
	HOISTWAY_EVENT_COMPLETE = 13,             /* [io] a request completed */
	HOISTWAY_EVENT_ACTIVATE = 32,             /* the queue of `pid` got the disk; detail is its level */
	HOISTWAY_EVENT_SLICE_SET = 33,            /* its slice ends at `value` ns */
	HOISTWAY_EVENT_SLICE_EXPIRED = 34,        /* it lost the disk with `value` ns left; detail 1: preempted */
	HOISTWAY_EVENT_IDLE_ARMED = 35,           /* the disk is kept idle for it until `value` ns */
	HOISTWAY_EVENT_IDLE_HIT = 36,             /* its next request ended the wait */
	HOISTWAY_EVENT_IDLE_TIMEOUT = 37,         /* time ended the wait */
	HOISTWAY_EVENT_PREEMPT = 38,              /* it took the disk from the queue of process `value` */
	HOISTWAY_EVENT_BATCH = 39,                /* a batch began; detail is its operation */
	HOISTWAY_EVENT_OVERDUE = 40,              /* request `token` goes out of order: its deadline had passed */
	HOISTWAY_EVENT_ANTICIPATE = 41,           /* the elevator waits for process `pid` until `value` ns */
	HOISTWAY_EVENT_ANTICIPATION_BROKEN = 42,  /* it stopped waiting */
	HOISTWAY_EVENT_ANTICIPATION_TIMEOUT = 43, /* it waited in vain */
	HOISTWAY_EVENT_SWITCHED = 44,             /* elevator number `detail` decides now */
	HOISTWAY_EVENT_CHARGE = 45,               /* the queue was charged `value`, in the elevator's own measure */
	HOISTWAY_EVENT_BUDGET_EXPIRED = 46,       /* `value` sectors of a budget of `sectors` were served; `detail` is why it ended:
	                                             0 too idle, 1 timed out, 2 exhausted, 3 no more requests, 4 preempted */
	HOISTWAY_EVENT_WEIGHT_RAISED = 47,        /* the queue's weight is multiplied by `detail`; 1 is the end of it */
	HOISTWAY_EVENT_QUEUES_MERGED = 48,        /* the queue is given up: that of process `value` serves both */
	HOISTWAY_EVENT_QUEUE_SPLIT = 49,          /* the process got a queue of its own again */
	HOISTWAY_EVENT_INJECTED = 50,             /* a request of the queue was put in while process `value` has the disk */
	HOISTWAY_EVENT_TOKEN_DEPTH = 51,          /* requests of kind `detail` (0 reads, 1 writes, 2 discards, 3 others) may have
	                                             `value` in the device */
	HOISTWAY_EVENT_AGED = 52,                 /* request `token` went before those of a higher class: it had waited long enough */
	HOISTWAY_EVENT_WORKLOAD = 53,             /* class `detail` / 256 (1 RT, 2 BE, 3 idle), kind `detail` % 256 (0 async, 1 sync
	                                             without idling, 2 sync) are served until `value` ns */
	HOISTWAY_EVENT_POSTPONED = 54,            /* requests are held back, async ones or one of a reserving process */
	HOISTWAY_EVENT_SWEEP_BEGUN = 55,          /* a sweep over `value` bytes of reserving processes began */
	HOISTWAY_EVENT_DEGRADED = 56              /* three sweeps in a row took longer than the bound of `value` ns */
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

/* --- making a queue --- */

/* The bytes that a queue of this capacity needs; 0 if the capacity is out of range. */
size_t hoistway_queue_size(const struct hoistway_capacity *capacity);

/* Writes the defaults: a 2.6.18 queue with plugging, merging up to 512 KiB and 128 requests a direction. */
int32_t hoistway_config_default(struct hoistway_config *config);

/* Added to the number of the elevator that a queue is made with or switched to: processes and groups can reserve bandwidth, whatever the
 * elevator. ("cfq-bw" is that over "cfq-v3" already.) */
#define HOISTWAY_RESERVING (1u << 16)

/* Makes a queue in `memory`, which must be aligned to HOISTWAY_ALIGNMENT and stay where it is. INVALID, TOO_SMALL, UNKNOWN. */
int32_t hoistway_queue_init(struct hoistway_queue *memory, size_t size, const struct hoistway_capacity *capacity,
                            const struct hoistway_config *config, uint32_t elevator, uint64_t now_ns);

/* --- elevators and tunables --- */

/* How many elevators there are; they are numbered from 0. */
uint32_t hoistway_elevator_count(void);

/* The number of an elevator by name or alias. UNKNOWN. */
int32_t hoistway_elevator_index(const char *name, size_t len);

/* Writes the name of an elevator and a zero; answers the length of the name. UNKNOWN, TOO_SMALL. */
int32_t hoistway_elevator_name(uint32_t elevator, char *buffer, size_t len);

/* The number of the elevator that decides now. */
int32_t hoistway_elevator(struct hoistway_queue *queue);

/* 1 if bandwidth can be reserved from it, else 0. */
int32_t hoistway_is_reserving(struct hoistway_queue *queue);

/* How many tunables that one has, those of reserved bandwidth first if it was made HOISTWAY_RESERVING; they are numbered from 0. */
int32_t hoistway_tunable_count(struct hoistway_queue *queue);

/* Writes a tunable and its value. UNKNOWN. */
int32_t hoistway_tunable(struct hoistway_queue *queue, uint32_t index, struct hoistway_tunable *tunable);

/* Stores a tunable. UNKNOWN, OUT_OF_RANGE. */
int32_t hoistway_set_tunable(struct hoistway_queue *queue, uint32_t index, int64_t value);
int32_t hoistway_set_tunable_by_name(struct hoistway_queue *queue, const char *name, size_t len, int64_t value);

/* Begins to switch to another elevator: the old one is drained, then the new one takes over with its default tunables. To the same one with
 * HOISTWAY_RESERVING or without is a switch too; what was reserved ends with it. BUSY, UNKNOWN. */
int32_t hoistway_switch(struct hoistway_queue *queue, uint32_t elevator, uint64_t now_ns);

/* 1 while a switch waits for the old elevator's last request, else 0. */
int32_t hoistway_is_switching(struct hoistway_queue *queue);

/* --- processes --- */

/* Takes in a process. INVALID, FULL. */
int32_t hoistway_context_create(struct hoistway_queue *queue, uint32_t pid, uint32_t class_, uint32_t level, int8_t nice,
                                hoistway_context *context);

/* It exits; its requests are still served. STALE. */
int32_t hoistway_context_exit(struct hoistway_queue *queue, hoistway_context context, uint64_t now_ns);

/* Sets its priority, or nice, which a priority of class NONE follows. INVALID, STALE. */
int32_t hoistway_context_set_priority(struct hoistway_queue *queue, hoistway_context context, uint32_t class_, uint32_t level,
                                      uint64_t now_ns);
int32_t hoistway_context_set_nice(struct hoistway_queue *queue, hoistway_context context, int8_t nice, uint64_t now_ns);

/* Tells by which policy it is given the CPU, which the class of a priority of class NONE follows from 2.6.26 on: 0 normal, 1 real time
 * (SCHED_FIFO, SCHED_RR), 2 idle (SCHED_IDLE). INVALID, STALE. */
int32_t hoistway_context_set_cpu_policy(struct hoistway_queue *queue, hoistway_context context, uint32_t policy,
                                        uint64_t now_ns);

/* Tells on which CPU it runs, 0 to 65535: multi-queue elevators file its requests by it. INVALID, STALE. */
int32_t hoistway_context_set_cpu(struct hoistway_queue *queue, hoistway_context context, uint32_t cpu);

/* --- groups --- */

/* The weights of a group: its own among its parent's other groups and processes, and (CFQ's final form) that of its own processes
 * against its child groups. Elevators without groups treat all processes as of one. */
enum hoistway_weight { HOISTWAY_WEIGHT_MIN = 1, HOISTWAY_WEIGHT_DEFAULT = 100, HOISTWAY_WEIGHT_MAX = 1000 };

/* Writes the root group, in which every context starts. INVALID. */
int32_t hoistway_group_root(struct hoistway_queue *queue, hoistway_group *group);

/* Makes a group below `parent`. INVALID, STALE, OUT_OF_RANGE, FULL (the root counts). */
int32_t hoistway_group_create(struct hoistway_queue *queue, hoistway_group parent, uint32_t weight, uint32_t leaf_weight,
                              uint64_t now_ns, hoistway_group *group);

/* Changes its weights. STALE, OUT_OF_RANGE. */
int32_t hoistway_group_set_weights(struct hoistway_queue *queue, hoistway_group group, uint32_t weight, uint32_t leaf_weight,
                                   uint64_t now_ns);

/* Removes it. STALE; BUSY while it has child groups, contexts or requests. */
int32_t hoistway_group_remove(struct hoistway_queue *queue, hoistway_group group, uint64_t now_ns);

/* Moves a process to a group. As in the kernel, elevators notice when they look at the process next. STALE. */
int32_t hoistway_context_move(struct hoistway_queue *queue, hoistway_context context, hoistway_group group, uint64_t now_ns);

/* --- reserved bandwidth --- */

/* Reserves bandwidth for a process, in a queue made HOISTWAY_RESERVING or with "cfq-bw", or changes what it has reserved: less is always granted.
 * It ends with hoistway_release(), the process, or a switch. After NO_CAPACITY `headroom` has what is left, in bytes a second. INVALID,
 * STALE, NOT_SUPPORTED, NO_CAPACITY. */
int32_t hoistway_reserve(struct hoistway_queue *queue, hoistway_context context, const struct hoistway_reservation *reservation,
                         uint64_t now_ns, uint64_t *headroom);
int32_t hoistway_release(struct hoistway_queue *queue, hoistway_context context, uint64_t now_ns);

/* The same for the processes of a group together (not those of its child groups), whenever they joined it. One with a reservation of its own has
 * that alone. It ends with hoistway_group_release(), the group, or a switch. */
int32_t hoistway_group_reserve(struct hoistway_queue *queue, hoistway_group group, const struct hoistway_reservation *reservation,
                               uint64_t now_ns, uint64_t *headroom);
int32_t hoistway_group_release(struct hoistway_queue *queue, hoistway_group group, uint64_t now_ns);

/* --- requests --- */

/* A process submits a bio. INVALID, FULL, STALE, BAD_EXTENT, NOT_SUPPORTED, NOT_AWAKE. After HOISTWAY_ASLEEP the process submits nothing until
 * it is woken (HOISTWAY_WORK_WAKE), and then this bio again with hoistway_resubmit(). */
int32_t hoistway_submit(struct hoistway_queue *queue, const struct hoistway_bio *bio, uint64_t now_ns,
                        struct hoistway_submitted *submitted);
int32_t hoistway_resubmit(struct hoistway_queue *queue, const struct hoistway_bio *bio, uint64_t now_ns,
                          struct hoistway_submitted *submitted);

/* A process waits for data on its way: what is held back goes to the device. */
int32_t hoistway_unplug(struct hoistway_queue *queue, uint64_t now_ns);

/* The next request, which the device takes by this call (OK), or WAIT, or EMPTY. */
int32_t hoistway_next(struct hoistway_queue *queue, uint64_t now_ns, struct hoistway_request *request);

/* The next request for one hardware queue, 0 to one less than the configuration's number of them. Elevators that know of one queue
 * answer the same for each. INVALID. */
int32_t hoistway_next_for(struct hoistway_queue *queue, uint32_t hw_queue, uint64_t now_ns, struct hoistway_request *request);

/* The device has finished a request: writes the tokens of its bios and their number. `len` must be at least the request's
 * bios_max. STALE, TOO_SMALL. */
int32_t hoistway_complete(struct hoistway_queue *queue, hoistway_request_id request, uint64_t now_ns, uint64_t *tokens,
                          uint32_t len, uint32_t *count);

/* The device gives a request back unserved; it will be the next one. Run the queue when the device can take it. STALE. */
int32_t hoistway_requeue(struct hoistway_queue *queue, hoistway_request_id request, uint64_t now_ns);

/* How many requests the device has. */
int32_t hoistway_in_flight(struct hoistway_queue *queue);

/* --- time and deferred work --- */

/* When hoistway_timer() has to be called next (OK), or EMPTY. */
int32_t hoistway_next_timer(struct hoistway_queue *queue, uint64_t *at_ns);

/* Fires the first timer that is due, if any. Repeat while hoistway_next_timer() is not in the future. */
int32_t hoistway_timer(struct hoistway_queue *queue, uint64_t now_ns);

/* Takes the oldest piece of deferred work (OK), or EMPTY. */
int32_t hoistway_next_work(struct hoistway_queue *queue, struct hoistway_work *work);

/* --- trace --- */

/* Takes the oldest event (OK), or EMPTY. */
int32_t hoistway_next_event(struct hoistway_queue *queue, struct hoistway_event *event);

/* How many events were dropped because there was no room. */
uint64_t hoistway_events_dropped(struct hoistway_queue *queue);

#ifdef __cplusplus
}
#endif

#endif
