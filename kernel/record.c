// SPDX-License-Identifier: GPL-2.0-only
/*
 * The recorder, in /sys/kernel/debug/hoistway/:
 *
 *   record_next      1: queues that are created from now on are recorded from their creation on;
 *                    0 (the default): they are not
 *   buffer_records   the length of a recording's buffer, for queues created from now on
 *   DISK/control     the state of the disk's recording; 0 ends it
 *   DISK/recording   the recording; what was read is removed from the buffer
 *
 * A recording ends with its queue, that is, when another elevator is selected. It can be read until
 * the next one of the same disk begins. When the buffer is full, the recording ends and further
 * records are counted as lost.
 *
 * The buffer is a ring. Its writer holds hw_queue.lock. Readers hold hw_recorder.lock, which is
 * taken before hw_queue.lock.
 */
#include <linux/debugfs.h>
#include <linux/module.h>
#include <linux/random.h>
#include <linux/sched/mm.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/timekeeping.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>

#include "record.h"

#ifdef HW_RECORDER

#ifdef __BIG_ENDIAN
#error "recordings are little-endian"
#endif

#define BUFFER_MIN 256
#define BUFFER_MAX (1u << 24)
/* The number of records that a read copies at a time. */
#define CHUNK 64

struct hw_recorder {
	struct list_head list;
	char disk[32];
	struct dentry *dir;
	spinlock_t lock;

	struct hw_record *buffer;
	u32 size;
	u64 head, tail; /* the numbers of the next record to write and to read */
	u64 lost;
	u64 last_ns;
	u64 secret;
	bool complete;       /* the last record was written */
	unsigned int offset; /* of the next byte to read in record `tail` */

	struct hw_queue *hw; /* the queue that is recorded, or NULL */
	char elevator[HW_NAME_MAX];
	struct hoistway_capacity capacity;
	struct hoistway_config config;
	u64 created_ns;
};

static struct dentry *root;
static bool record_next;
static u32 buffer_records = 1u << 18;
static LIST_HEAD(recorders);
static DEFINE_MUTEX(recorders_lock);

/* --- writing --- */

static void put(struct hw_recorder *rec, const struct hw_record *record, unsigned int reserve)
{
	u64 used = rec->head - smp_load_acquire(&rec->tail);
	struct hw_record *slot = &rec->buffer[rec->head % rec->size];

	if (rec->lost || used + reserve >= rec->size) {
		WRITE_ONCE(rec->lost, rec->lost + 1);
		return;
	}
	*slot = *record;
	slot->sequence = rec->head;
	smp_store_release(&rec->head, rec->head + 1);
}

void hw_record(struct hw_queue *hw, struct hw_record record)
{
	struct hw_recorder *rec = hw->recorder;

	if (record.time)
		rec->last_ns = record.time;
	else
		record.time = rec->last_ns;
	if (record.token && record.call >= HW_RECORD_SUBMIT)
		record.token ^= rec->secret;
	/* One record is kept free for the end. */
	put(rec, &record, 1);
}

void hw_record_bio(struct hw_queue *hw, struct hw_record record, const struct hoistway_bio *bio)
{
	record.op = bio->op;
	record.flags = bio->flags;
	hw_record(hw, record);
}

/* Remembers the configuration with which a queue of the core was created. */
void hw_record_created(struct hw_queue *hw, const struct hoistway_capacity *capacity,
		       const struct hoistway_config *config, u64 now)
{
	struct hw_recorder *rec = hw->recorder;

	if (!rec)
		return;
	rec->capacity = *capacity;
	rec->config = *config;
	rec->created_ns = now;
}

static u64 halves(u32 low, u32 high)
{
	return (u64)high << 32 | low;
}

/* Records the creation of the core's queue, which has got no calls yet. Call with the lock held or before the
 * queue is in use. */
void hw_record_begin(struct hw_queue *hw)
{
	struct hw_recorder *rec = hw->recorder;
	const struct hoistway_capacity *capacity;
	const struct hoistway_config *config;
	struct hoistway_tunable tunable;
	struct hw_record record;
	hoistway_group group;
	u32 i;

	if (!rec)
		return;
	capacity = &rec->capacity;
	config = &rec->config;
	if (hoistway_group_root(hw->core, &group) < 0)
		group = 0;
	HW_RECORD(hw, QUEUE, .time = rec->created_ns, .n = { hw->type->tunable_count },
		  .a = { halves(capacity->requests, capacity->contexts), halves(capacity->merged_bios, capacity->events),
			 halves(capacity->groups, hw->type->elevator), group });
	HW_RECORD(hw, CONFIG, .n = { config->hw_queues },
		  .a = { halves(config->layer, config->hz), halves(config->nr_requests, config->max_sectors),
			 config->uptime_ns,
			 config->plugging | config->merging << 8 | config->refusal_ends_merging << 16 |
			 (u64)config->ordered << 24 | (u64)config->ordered_flush << 32 |
			 (u64)config->ordered_fua << 40 | (u64)config->rotational << 48 });
	record = (struct hw_record){ .call = HW_RECORD_NAME };
	if (hoistway_elevator_name(hw->type->elevator & ~HOISTWAY_FIXED, (char *)&record.a[0], 16) < 0)
		record.a[0] = 0;
	strscpy((char *)&record.a[2], HW_VERSION, 16);
	hw_record(hw, record);
	for (i = 0; i < hw->type->tunable_count; i++) {
		record = (struct hw_record){ .call = HW_RECORD_TUNABLE, .n = { i } };
		if (hoistway_tunable(hw->core, i, &tunable) != HOISTWAY_OK)
			break;
		memcpy(record.a, tunable.name, min_t(size_t, tunable.name_len, sizeof(record.a)));
		record.token = tunable.value;
		hw_record(hw, record);
	}
}

/* Ends the recording of a queue. Call with rec->lock, and the queue's lock unless it is not in use. */
static void end(struct hw_recorder *rec)
{
	struct hw_record record = {
		.call = HW_RECORD_END, .time = rec->last_ns, .a = { rec->lost, rec->head - 1 },
	};

	rec->lost = 0;
	put(rec, &record, 0);
	rec->lost = record.a[0];
	rec->complete = true;
	rec->hw->recorder = NULL;
	rec->hw = NULL;
}

/* Ends the recording of a queue that gets no more calls. */
void hw_record_end(struct hw_queue *hw)
{
	struct hw_recorder *rec;
	unsigned long flags;

	mutex_lock(&recorders_lock);
	list_for_each_entry(rec, &recorders, list) {
		spin_lock_irqsave(&rec->lock, flags);
		if (rec->hw == hw)
			end(rec);
		spin_unlock_irqrestore(&rec->lock, flags);
	}
	mutex_unlock(&recorders_lock);
}

/* --- files --- */

static ssize_t read_recording(struct file *file, char __user *to, size_t size, loff_t *position)
{
	struct hw_recorder *rec = file_inode(file)->i_private;
	unsigned int count, offset, length, i;
	struct hw_record *chunk;
	ssize_t copied = 0;

	if (!size)
		return 0;
	chunk = kmalloc_array(CHUNK, sizeof(*chunk), GFP_KERNEL);
	if (!chunk)
		return -ENOMEM;
	while ((size_t)copied < size) {
		spin_lock_irq(&rec->lock);
		count = min_t(u64, smp_load_acquire(&rec->head) - rec->tail, CHUNK);
		offset = rec->offset;
		for (i = 0; i < count; i++)
			chunk[i] = rec->buffer[(rec->tail + i) % rec->size];
		length = min_t(size_t, count * sizeof(*chunk) - (count ? offset : 0), size - copied);
		rec->offset = (offset + length) % sizeof(*chunk);
		smp_store_release(&rec->tail, rec->tail + (offset + length) / sizeof(*chunk));
		spin_unlock_irq(&rec->lock);
		if (!length)
			break;
		if (copy_to_user(to + copied, (char *)chunk + offset, length)) {
			copied = -EFAULT;
			break;
		}
		copied += length;
	}
	kfree(chunk);
	return copied;
}

static const struct file_operations recording_fops = {
	.owner = THIS_MODULE,
	.open = nonseekable_open,
	.read = read_recording,
};

static int show_control(struct seq_file *file, void *data)
{
	struct hw_recorder *rec = file->private;
	unsigned long flags;
	u64 head, lost;

	spin_lock_irqsave(&rec->lock, flags);
	/* The queue that is recorded may write both. */
	head = smp_load_acquire(&rec->head);
	lost = READ_ONCE(rec->lost);
	seq_printf(file, "elevator %s\nstate %s\nrecords %llu\nunread %llu\nlost %llu\nbuffer %u\n", rec->elevator,
		   rec->hw ? "active" : rec->complete ? "complete" : "none", head, head - rec->tail, lost, rec->size);
	spin_unlock_irqrestore(&rec->lock, flags);
	return 0;
}

static int open_control(struct inode *inode, struct file *file)
{
	return single_open(file, show_control, inode->i_private);
}

static ssize_t write_control(struct file *file, const char __user *from, size_t size, loff_t *position)
{
	struct hw_recorder *rec = file_inode(file)->i_private;
	struct hw_queue *hw;
	bool on;
	int error = kstrtobool_from_user(from, size, &on);

	if (error)
		return error;
	/* A recording begins with its queue. */
	if (on)
		return -EINVAL;
	spin_lock_irq(&rec->lock);
	hw = rec->hw;
	if (hw) {
		spin_lock(&hw->lock);
		end(rec);
		spin_unlock(&hw->lock);
	}
	spin_unlock_irq(&rec->lock);
	return size;
}

static const struct file_operations control_fops = {
	.owner = THIS_MODULE,
	.open = open_control,
	.read = seq_read,
	.write = write_control,
	.llseek = seq_lseek,
	.release = single_release,
};

/* --- beginning --- */

static struct hw_recorder *recorder_of(const char *disk)
{
	struct hw_recorder *rec;

	list_for_each_entry(rec, &recorders, list)
		if (!strcmp(rec->disk, disk))
			return rec;
	rec = kzalloc(sizeof(*rec), GFP_KERNEL);
	if (!rec)
		return NULL;
	strscpy(rec->disk, disk, sizeof(rec->disk));
	spin_lock_init(&rec->lock);
	rec->dir = debugfs_create_dir(disk, root);
	debugfs_create_file("control", 0600, rec->dir, rec, &control_fops);
	debugfs_create_file("recording", 0400, rec->dir, rec, &recording_fops);
	list_add(&rec->list, &recorders);
	return rec;
}

static void write_header(struct hw_recorder *rec)
{
	struct hw_record_header *header = (void *)rec->buffer;

	*header = (struct hw_record_header){
		.version = HW_RECORD_VERSION,
		.record_size = sizeof(struct hw_record),
		.hz = HZ,
		.realtime_ns = ktime_get_real_ns(),
	};
	memcpy(header->magic, HW_RECORD_MAGIC, sizeof(header->magic));
	memcpy(header->disk, rec->disk, sizeof(header->disk));
}

/* Begins a recording in place of the disk's last one. The queue is not in use yet. */
static void begin(struct hw_queue *hw, const char *disk)
{
	u32 size = clamp_t(u32, READ_ONCE(buffer_records), BUFFER_MIN, BUFFER_MAX);
	struct hw_record *buffer = vmalloc(array_size(size, sizeof(*buffer))), *old;
	struct hw_recorder *rec = recorder_of(disk);

	if (!buffer || !rec || rec->hw) {
		pr_warn("hoistway: %s is not recorded: no memory for %u records, or its queue has another name\n", disk, size);
		vfree(buffer);
		return;
	}
	spin_lock_irq(&rec->lock);
	old = rec->buffer;
	rec->buffer = buffer;
	rec->size = size;
	rec->tail = 0;
	rec->offset = 0;
	rec->lost = 0;
	rec->last_ns = 0;
	rec->complete = false;
	rec->secret = get_random_u64();
	strscpy(rec->elevator, hw->type->name, sizeof(rec->elevator));
	write_header(rec);
	rec->head = 1;
	rec->hw = hw;
	hw->recorder = rec;
	spin_unlock_irq(&rec->lock);
	vfree(old);
}

/* Begins the recording of a new queue if recording is on. The disk may be frozen, so that no I/O may be done for
 * memory. */
void hw_record_attach(struct hw_queue *hw)
{
	unsigned int noio;

	if (!READ_ONCE(record_next) || !hw->q->disk)
		return;
	noio = memalloc_noio_save();
	mutex_lock(&recorders_lock);
	begin(hw, hw->q->disk->disk_name);
	mutex_unlock(&recorders_lock);
	memalloc_noio_restore(noio);
}

void hw_record_init(void)
{
	root = debugfs_create_dir("hoistway", NULL);
	debugfs_create_bool("record_next", 0600, root, &record_next);
	debugfs_create_u32("buffer_records", 0600, root, &buffer_records);
}

/* No queue exists any more. */
void hw_record_exit(void)
{
	struct hw_recorder *rec, *next;

	debugfs_remove_recursive(root);
	list_for_each_entry_safe(rec, next, &recorders, list) {
		vfree(rec->buffer);
		kfree(rec);
	}
}

#endif
