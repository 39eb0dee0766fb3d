// SPDX-License-Identifier: GPL-2.0-only
/*
 * Reserved bandwidth, with elevators that support it (cfq-bw): the file queue/iosched/reservations.
 *
 *     echo "pid 1234 20000000" > reservations            20 MB/s for a process
 *     echo "group /player 20000000" > reservations       ... for the processes of a control group
 *     echo "pid 1234 0" > reservations                   the end of a reservation
 *
 * Two more numbers set the depth of the token bucket and the size of requests, in bytes. A process
 * or group that has not used the disk yet gets its reservation with its first request. Reservations
 * end with the process, the group, or a change of the elevator.
 */
#include <linux/cgroup.h>
#include <linux/kernel.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "reservations.h"
#include "core_calls.h"
#include "settle.h"

/* The largest number of reservations of a queue. */
#define RESERVATIONS_MAX 256

/* A reservation: of the process `pid`, or of the group `serial`. */
struct reservation {
	struct list_head list;
	u64 serial;
	pid_t pid;
	struct hoistway_reservation wanted;
	char *path; /* of the group */
};

static bool is_for(const struct reservation *entry, pid_t pid, u64 serial)
{
	return entry->pid == pid && entry->serial == serial;
}

static struct reservation *find(struct hw_queue *hw, pid_t pid, u64 serial)
{
	struct reservation *entry;

	list_for_each_entry(entry, &hw->reservations, list)
		if (is_for(entry, pid, serial))
			return entry;
	return NULL;
}

static void drop(struct hw_queue *hw, struct reservation *entry)
{
	list_del(&entry->list);
	hw->reservation_count--;
	kfree(entry->path);
	kfree(entry);
}

static int error_of(struct hw_queue *hw, int status, u64 headroom)
{
	switch (status) {
	case HOISTWAY_NO_CAPACITY:
		pr_info("hoistway: %s: the device has no capacity for the reservation; %llu bytes a second are free\n",
			hw->type->name, headroom);
		return -ENOSPC;
	case HOISTWAY_STALE:
		return -ESRCH;
	default:
		return status < 0 ? -EINVAL : 0;
	}
}

static int apply_to_process(struct hw_queue *hw, struct hw_context *context, const struct hoistway_reservation *wanted)
{
	u64 headroom = 0;
	int status;

	if (wanted->bytes_per_second)
		status = hw_core_reserve(hw, context->handle, wanted, hw_now(hw), &headroom);
	else
		status = hw_core_release(hw, context->handle, hw_now(hw));
	return error_of(hw, status, headroom);
}

static int apply_to_group(struct hw_queue *hw, struct hw_group *group, const struct hoistway_reservation *wanted)
{
	u64 headroom = 0;
	int status;

	if (wanted->bytes_per_second)
		status = hw_core_group_reserve(hw, group->handle, wanted, hw_now(hw), &headroom);
	else
		status = hw_core_group_release(hw, group->handle, hw_now(hw));
	return error_of(hw, status, headroom);
}

/* Gives a new context, or one in a new core, its reservation. Call with the lock held. */
void hw_reserve_for_context(struct hw_context *context)
{
	struct reservation *entry = context->pid ? find(context->hw, context->pid, 0) : NULL;

	if (unlikely(entry))
		apply_to_process(context->hw, context, &entry->wanted);
}

/* Gives a new group its reservation. Call with the lock held. */
void hw_reserve_for_group(struct hw_queue *hw, struct hw_group *group)
{
	struct reservation *entry = find(hw, 0, group->serial);

	if (unlikely(entry))
		apply_to_group(hw, group, &entry->wanted);
}

/* Forgets the reservation of a process or group that ends. Call with the lock held. */
void hw_reservation_end(struct hw_queue *hw, pid_t pid, u64 serial)
{
	struct reservation *entry = list_empty(&hw->reservations) ? NULL : find(hw, pid, serial);

	if (unlikely(entry))
		drop(hw, entry);
}

void hw_reservations_free(struct hw_queue *hw)
{
	struct reservation *entry, *next;

	list_for_each_entry_safe(entry, next, &hw->reservations, list)
		drop(hw, entry);
}

/* --- the file --- */

ssize_t hw_reservations_show(struct elevator_queue *eq, char *page)
{
	struct hw_queue *hw = eq->elevator_data;
	struct reservation *entry;
	unsigned long flags;
	ssize_t length = 0;

	spin_lock_irqsave(&hw->lock, flags);
	list_for_each_entry(entry, &hw->reservations, list) {
		if (entry->path)
			length += sysfs_emit_at(page, length, "group %s", entry->path);
		else
			length += sysfs_emit_at(page, length, "pid %d", entry->pid);
		length += sysfs_emit_at(page, length, " %llu %llu %llu\n", entry->wanted.bytes_per_second,
					entry->wanted.depth_bytes, entry->wanted.request_bytes);
	}
	spin_unlock_irqrestore(&hw->lock, flags);
	return length;
}

/* The serial number of a control group's I/O state; 0 if there is no such group, or it is the root. */
static u64 serial_of(const char *path)
{
	struct cgroup *cgroup = cgroup_get_from_path(path);
	struct cgroup_subsys_state *css;
	u64 serial = 0;

	if (IS_ERR(cgroup))
		return 0;
	css = cgroup_get_e_css(cgroup, &io_cgrp_subsys);
	if (css) {
		serial = css->parent ? css->serial_nr : 0;
		css_put(css);
	}
	cgroup_put(cgroup);
	return serial;
}

static int parse(char *text, struct reservation *entry)
{
	char *kind = strsep(&text, " "), *name = strsep(&text, " ");
	u64 *numbers[] = { &entry->wanted.bytes_per_second, &entry->wanted.depth_bytes, &entry->wanted.request_bytes };
	unsigned int i;
	int error;

	if (!kind || !name || !text)
		return -EINVAL;
	for (i = 0; i < ARRAY_SIZE(numbers) && text; i++) {
		error = kstrtou64(strsep(&text, " "), 10, numbers[i]);
		if (error)
			return error;
	}
	if (text)
		return -EINVAL;
	if (!strcmp(kind, "pid"))
		return kstrtoint(name, 10, &entry->pid) || entry->pid <= 0 ? -EINVAL : 0;
	if (strcmp(kind, "group"))
		return -EINVAL;
	entry->path = kstrdup(name, GFP_KERNEL);
	if (!entry->path)
		return -ENOMEM;
	entry->serial = serial_of(name);
	return entry->serial ? 0 : -ENOENT;
}

/* Applies a reservation to the process or group, if it has used the disk. Call with the lock held. */
static int apply(struct hw_queue *hw, const struct reservation *entry)
{
	struct hw_context *context;
	struct hw_group *group;

	if (entry->serial) {
		group = hw_group_find(hw, entry->serial);
		return group ? apply_to_group(hw, group, &entry->wanted) : 0;
	}
	list_for_each_entry(context, &hw->contexts, list)
		if (context->pid == entry->pid)
			return apply_to_process(hw, context, &entry->wanted);
	return 0;
}

ssize_t hw_reservations_store(struct elevator_queue *eq, const char *page, size_t count)
{
	struct hw_queue *hw = eq->elevator_data;
	struct reservation *entry = kzalloc(sizeof(*entry), GFP_KERNEL), *old;
	char *text = kstrndup(page, count, GFP_KERNEL);
	unsigned long flags;
	int error = -ENOMEM, run = 0;

	if (!entry || !text)
		goto out;
	error = parse(strim(text), entry);
	if (error)
		goto out;
	spin_lock_irqsave(&hw->lock, flags);
	old = find(hw, entry->pid, entry->serial);
	if (!old && hw->reservation_count >= RESERVATIONS_MAX)
		error = -ENOSPC;
	if (!error)
		error = apply(hw, entry);
	if (!error) {
		if (old)
			drop(hw, old);
		if (entry->wanted.bytes_per_second) {
			list_add_tail(&entry->list, &hw->reservations);
			hw->reservation_count++;
			entry = NULL;
		}
	}
	run = hw_settle(hw, HOISTWAY_OK);
	spin_unlock_irqrestore(&hw->lock, flags);
	hw_run(hw, run);
out:
	if (entry)
		kfree(entry->path);
	kfree(entry);
	kfree(text);
	return error ? error : count;
}
