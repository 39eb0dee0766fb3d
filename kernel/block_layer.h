/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The block layer's interface to elevators, which linux-headers does not contain. Written from the
 * BTF of Debian's kernels 6.1 to 7.3. The HW_* symbols come from config.h, which check-btf makes
 * from the BTF of the kernel for which the module is built. check-btf then compares the layout of
 * each structure here with that kernel's and refuses to build on a difference.
 */
#ifndef HOISTWAY_BLOCK_LAYER_H
#define HOISTWAY_BLOCK_LAYER_H

#include <linux/blk-cgroup.h>
#include <linux/blk-mq.h>
#include <linux/blkdev.h>
#include <linux/cgroup.h>
#include <linux/iocontext.h>
#include <linux/kobject.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/sysfs.h>

#include "config.h"

enum elv_merge {
	ELEVATOR_NO_MERGE = 0,
	ELEVATOR_FRONT_MERGE = 1,
	ELEVATOR_BACK_MERGE = 2,
	ELEVATOR_DISCARD_MERGE = 3,
};

struct blk_mq_alloc_data {
	struct request_queue *q;
	blk_mq_req_flags_t flags;
	unsigned int shallow_depth;
	/* The rest is not used. */
};

#ifdef HW_INSERT_FLAGS
/* Of type blk_insert_t; any flag means: at the head. */
typedef unsigned int __bitwise blk_insert_t;
typedef blk_insert_t hw_insert_flags;
#else
typedef bool hw_insert_flags;
#endif

struct elevator_type;
struct elevator_queue;

struct elevator_mq_ops {
#ifdef HW_INIT_SCHED_QUEUE
	int (*init_sched)(struct request_queue *q, struct elevator_queue *eq);
#else
	int (*init_sched)(struct request_queue *q, struct elevator_type *type);
#endif
	void (*exit_sched)(struct elevator_queue *eq);
	int (*init_hctx)(struct blk_mq_hw_ctx *hctx, unsigned int index);
	void (*exit_hctx)(struct blk_mq_hw_ctx *hctx, unsigned int index);
#ifdef HW_DEPTH_UPDATED_QUEUE
	void (*depth_updated)(struct request_queue *q);
#else
	void (*depth_updated)(struct blk_mq_hw_ctx *hctx);
#endif
#ifdef HW_ALLOC_SCHED_DATA
	void *(*alloc_sched_data)(struct request_queue *q);
	void (*free_sched_data)(void *data);
#endif
	bool (*allow_merge)(struct request_queue *q, struct request *rq, struct bio *bio);
	bool (*bio_merge)(struct request_queue *q, struct bio *bio, unsigned int nr_segs);
	int (*request_merge)(struct request_queue *q, struct request **rq, struct bio *bio);
	void (*request_merged)(struct request_queue *q, struct request *rq, enum elv_merge type);
	void (*requests_merged)(struct request_queue *q, struct request *rq, struct request *next);
	void (*limit_depth)(blk_opf_t opf, struct blk_mq_alloc_data *data);
	void (*prepare_request)(struct request *rq);
	void (*finish_request)(struct request *rq);
	void (*insert_requests)(struct blk_mq_hw_ctx *hctx, struct list_head *list, hw_insert_flags flags);
	struct request *(*dispatch_request)(struct blk_mq_hw_ctx *hctx);
	bool (*has_work)(struct blk_mq_hw_ctx *hctx);
	void (*completed_request)(struct request *rq, u64 now_ns);
	void (*requeue_request)(struct request *rq);
	struct request *(*former_request)(struct request_queue *q, struct request *rq);
	struct request *(*next_request)(struct request_queue *q, struct request *rq);
	void (*init_icq)(struct io_cq *icq);
	void (*exit_icq)(struct io_cq *icq);
};

struct elv_fs_entry {
	struct attribute attr;
	ssize_t (*show)(struct elevator_queue *eq, char *page);
	ssize_t (*store)(struct elevator_queue *eq, const char *page, size_t count);
};

struct blk_mq_debugfs_attr {
	const char *name;
	umode_t mode;
	int (*show)(void *data, struct seq_file *m);
	ssize_t (*write)(void *data, const char __user *buf, size_t count, loff_t *ppos);
	const struct seq_operations *seq_ops;
};

#define HW_ICQ_CACHE_NAME 22

struct elevator_type {
	struct kmem_cache *icq_cache;
	struct elevator_mq_ops ops;
	size_t icq_size;
	size_t icq_align;
	const struct elv_fs_entry *elevator_attrs;
	const char *elevator_name;
	const char *elevator_alias;
#ifdef HW_ELEVATOR_FEATURES
	const unsigned int elevator_features;
#endif
	struct module *elevator_owner;
	const struct blk_mq_debugfs_attr *queue_debugfs_attrs;
	const struct blk_mq_debugfs_attr *hctx_debugfs_attrs;
	char icq_cache_name[HW_ICQ_CACHE_NAME];
	struct list_head list;
};

struct elevator_queue {
	struct elevator_type *type;
#ifdef HW_ELEVATOR_TAGS
	struct elevator_tags *et;
#endif
	void *elevator_data;
	struct kobject kobj;
	/* The rest is not used. */
};

int elv_register(struct elevator_type *type);
void elv_unregister(struct elevator_type *type);
#ifndef HW_INIT_SCHED_QUEUE
struct elevator_queue *elevator_alloc(struct request_queue *q, struct elevator_type *type);
#endif
void elv_rqhash_add(struct request_queue *q, struct request *rq);
void elv_rqhash_del(struct request_queue *q, struct request *rq);
bool elv_bio_merge_ok(struct request *rq, struct bio *bio);
bool blk_mq_sched_try_merge(struct request_queue *q, struct bio *bio, unsigned int nr_segs,
			    struct request **merged);
bool blk_mq_sched_try_insert_merge(struct request_queue *q, struct request *rq, struct list_head *free);
struct io_cq *ioc_find_get_icq(struct request_queue *q);

/* The flag of requests for which prepare_request() was called. */
#ifdef RQF_ELVPRIV
#define HW_RQF_PREPARED RQF_ELVPRIV
#else
#define HW_RQF_PREPARED RQF_USE_SCHED
#endif

/* --- I/O controllers of control groups --- */

struct blkcg;

struct blkcg_policy_data {
	struct blkcg *blkcg;
	int plid;
};

typedef struct blkcg_policy_data *(blkcg_pol_alloc_cpd_fn)(gfp_t gfp);
typedef void (blkcg_pol_free_cpd_fn)(struct blkcg_policy_data *data);

/* The functions whose types are not needed here are pointers without a type. */
struct blkcg_policy {
	int plid;
	struct cftype *dfl_cftypes;
	struct cftype *legacy_cftypes;
	blkcg_pol_alloc_cpd_fn *cpd_alloc_fn;
#ifdef HW_CPD_INIT
	void *cpd_init_fn;
#endif
	blkcg_pol_free_cpd_fn *cpd_free_fn;
#ifdef HW_CPD_INIT
	void *cpd_bind_fn;
#endif
	void *pd_alloc_fn;
	void *pd_init_fn;
	void *pd_online_fn;
	void *pd_offline_fn;
	void *pd_free_fn;
	void *pd_reset_stats_fn;
	void *pd_stat_fn;
};

int blkcg_policy_register(struct blkcg_policy *policy);
void blkcg_policy_unregister(struct blkcg_policy *policy);

#endif
