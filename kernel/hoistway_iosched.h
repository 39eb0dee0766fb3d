/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The types of the module hoistway_iosched, which makes hoistway's elevators available to the
 * kernel's block layer. Each part of the module has a header of its own name, and includes only
 * headers of parts that are below it here:
 *
 *   module.c        loading, parameters, registration of the elevators
 *   tunables.c      queue/iosched/ in sysfs
 *   debug.c         the state in debugfs
 *   queue.c         the calls of the block layer: insertion, merging, dispatch, completion
 *   groups.c        control groups and their weights
 *   contexts.c      the I/O contexts of processes
 *   reservations.c  reserved bandwidth
 *   settle.c        what each call of the core leaves to do, and the list of all queues
 *   notes.c         notes for blktrace
 *   core_calls.h    the calls of the core, each under the queue's lock, with the recorder's hook
 *   record.c        the recorder: each call of the core and its answer, for hoistway conform
 *
 * Locking: hw_queue.lock protects the core and everything in struct hw_queue. It is taken with
 * interrupts disabled, since requests complete in interrupt context. Under it nothing sleeps,
 * allocates memory or calls the block layer, with the exceptions of hw_bio_merge() and the search
 * at insertion, whose calls return to this module with the lock held.
 */
#ifndef HOISTWAY_IOSCHED_H
#define HOISTWAY_IOSCHED_H

#include <linux/hash.h>
#include <linux/hrtimer.h>
#include <linux/kref.h>
#include <linux/refcount.h>
#include <linux/spinlock.h>

#include "block_layer.h"
#include "hoistway.h"

#ifdef CONFIG_DEBUG_FS
#define HW_RECORDER
#endif

/* The longest name of an elevator, with the terminating zero (the block layer's limit). */
#define HW_NAME_MAX 16
/* The largest number of tunables of an elevator. */
#define HW_TUNABLES_MAX 48
/* The length of the core's event ring, for notes in blktrace. */
#define HW_EVENTS 64
/* The buckets of a queue's table of groups. */
#define HW_GROUP_BUCKETS 64

struct hw_tunable {
	char name[32];
	s64 default_value, min, max;
};

/* A registered elevator. */
struct hw_type {
	struct elevator_type type; /* first: the block layer passes a pointer to it */
	char name[HW_NAME_MAX];
	/* The core's number of the elevator, with HOISTWAY_FIXED. */
	u32 elevator;
	/* The elevator limits the number of requests. */
	bool limits_depth;
	/* The limit depends on the process. */
	bool limits_by_context;
	/* The elevator has one dispatch queue for each hardware queue. */
	bool per_hctx;
	/* Processes and groups can reserve bandwidth. */
	bool reserves;
	unsigned int tunable_count;
	struct hw_tunable tunables[HW_TUNABLES_MAX];
	struct elv_fs_entry attrs[HW_TUNABLES_MAX + 2];
	struct list_head list;
};

/* An I/O context: a process that uses the queue. */
struct hw_context {
	refcount_t users; /* the icq and each request */
	struct hw_queue *hw;
	struct list_head list; /* in hw_queue.contexts while the process runs */
	hoistway_context handle;
	u64 group; /* the serial number of its control group; 0: the root */
	pid_t pid;
	u16 ioprio;
	bool kernel_thread;
	bool exited;
};

/* The block layer's record of a process that uses the queue. */
struct hw_icq {
	struct io_cq icq; /* first */
	struct hw_context *context;
};

/* A control group that has used the queue. */
struct hw_group {
	struct hlist_node node;
	u64 serial; /* cgroup_subsys_state.serial_nr */
	hoistway_group handle;
	u32 weight;
	/* The context of writes that kernel threads submit for the group, or NULL. */
	struct hw_context *writer;
};

/* A queue with one of our elevators. */
struct hw_queue {
	spinlock_t lock;
	/* Whether dispatch may return a request. It and `queued` are read without the lock. */
	unsigned int has_work;

	struct hoistway_queue *core;
	struct hw_type *type;
	struct request_queue *q;
	struct kref users; /* the block layer and each context */
	bool dead;

	unsigned int capacity; /* in requests */
	unsigned int queued;   /* requests in the core that the driver has not taken */
	unsigned int in_flight;
	int settled;           /* requests whose order the core has decided */
	u64 *tokens;           /* room for `capacity` of them */
	bool refused;          /* the core had no request for the block layer when it was asked last */
	bool waiting;          /* the elevator waits for a timer, an arrival or a completion */
	bool run_due;          /* a context's end requires a run of the hardware queues */
	bool notes;            /* the core records notes for blktrace */
	struct list_head bypass;   /* requests that do not go through the elevator, oldest first */
	struct list_head overflow; /* requests for which the core had no room, oldest first */

	struct hrtimer timer;
	u64 timer_ns; /* the time for which it is armed; U64_MAX: not armed */

	struct list_head contexts;
	struct hw_context *others; /* of processes for which the core had no room */
	struct hw_context *merging; /* of the bio for which a merge is being searched */
	/* The request that an elevator with a search of its own found for that bio, or NULL. */
	struct request *candidate;
	u32 candidate_side;

	struct hlist_head groups[HW_GROUP_BUCKETS];
	struct list_head reservations;
	unsigned int reservation_count;
	struct list_head all; /* in the list of all queues */

	/* Counters that debugfs shows. */
	u64 overflowed, shared, bypassed, requeued, polls, group_overflow;

#ifdef HW_RECORDER
	struct hw_recorder *recorder;
#endif
};

static inline struct hw_queue *hw_of(struct request_queue *q)
{
	return q->elevator->elevator_data;
}

static inline struct hw_type *hw_type_of(struct elevator_type *type)
{
	return container_of(type, struct hw_type, type);
}

static inline struct hlist_head *hw_group_bucket(struct hw_queue *hw, u64 serial)
{
	return &hw->groups[hash_64(serial, ilog2(HW_GROUP_BUCKETS))];
}

/* Returns the group of a control group, or NULL if it has not used the queue. */
static inline struct hw_group *hw_group_find(struct hw_queue *hw, u64 serial)
{
	struct hw_group *group;

	hlist_for_each_entry(group, hw_group_bucket(hw, serial), node)
		if (group->serial == serial)
			return group;
	return NULL;
}

#endif
