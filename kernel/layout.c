// SPDX-License-Identifier: GPL-2.0-only
/*
 * Compares the structures of block_layer.h with the layouts in config.h, which are those of the
 * kernel's BTF.
 */
#include <linux/build_bug.h>
#include <linux/stddef.h>

#include "block_layer.h"

#define AT(structure, member)									\
	static_assert(offsetof(struct structure, member) == HW_AT_##structure##_##member,	\
		      "struct " #structure ": " #member " is elsewhere in this kernel")
#define SIZE(structure)							\
	static_assert(sizeof(struct structure) == HW_SIZE_##structure,	\
		      "struct " #structure " has another size in this kernel")

AT(elevator_mq_ops, init_sched);
AT(elevator_mq_ops, exit_sched);
AT(elevator_mq_ops, depth_updated);
AT(elevator_mq_ops, allow_merge);
AT(elevator_mq_ops, bio_merge);
AT(elevator_mq_ops, request_merge);
AT(elevator_mq_ops, request_merged);
AT(elevator_mq_ops, requests_merged);
AT(elevator_mq_ops, limit_depth);
AT(elevator_mq_ops, prepare_request);
AT(elevator_mq_ops, finish_request);
AT(elevator_mq_ops, insert_requests);
AT(elevator_mq_ops, dispatch_request);
AT(elevator_mq_ops, has_work);
AT(elevator_mq_ops, completed_request);
AT(elevator_mq_ops, former_request);
AT(elevator_mq_ops, next_request);
AT(elevator_mq_ops, exit_icq);
SIZE(elevator_mq_ops);

AT(elevator_type, icq_cache);
AT(elevator_type, ops);
AT(elevator_type, icq_size);
AT(elevator_type, icq_align);
AT(elevator_type, elevator_attrs);
AT(elevator_type, elevator_name);
AT(elevator_type, elevator_alias);
AT(elevator_type, elevator_owner);
AT(elevator_type, queue_debugfs_attrs);
AT(elevator_type, icq_cache_name);
AT(elevator_type, list);
SIZE(elevator_type);

AT(elevator_queue, type);
AT(elevator_queue, elevator_data);
AT(elevator_queue, kobj);

AT(elv_fs_entry, attr);
AT(elv_fs_entry, show);
AT(elv_fs_entry, store);
SIZE(elv_fs_entry);

AT(blk_mq_debugfs_attr, name);
AT(blk_mq_debugfs_attr, mode);
AT(blk_mq_debugfs_attr, show);
AT(blk_mq_debugfs_attr, write);
AT(blk_mq_debugfs_attr, seq_ops);
SIZE(blk_mq_debugfs_attr);

AT(blk_mq_alloc_data, q);
AT(blk_mq_alloc_data, shallow_depth);

AT(blkcg_policy_data, blkcg);
AT(blkcg_policy_data, plid);
SIZE(blkcg_policy_data);
AT(blkcg_policy, plid);
AT(blkcg_policy, dfl_cftypes);
AT(blkcg_policy, legacy_cftypes);
AT(blkcg_policy, cpd_alloc_fn);
AT(blkcg_policy, cpd_free_fn);
AT(blkcg_policy, pd_stat_fn);
SIZE(blkcg_policy);

#define HEADER_SIZE(structure)						\
	static_assert(sizeof(struct structure) == HW_SIZE_##structure,	\
		      "the kernel's headers and its type information (BTF) are of different kernels")

HEADER_SIZE(request);
HEADER_SIZE(request_queue);
HEADER_SIZE(blk_mq_hw_ctx);
HEADER_SIZE(bio);
