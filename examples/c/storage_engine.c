/*
 * An elevator inside a storage engine.
 *
 * Each client is a thread that keeps up to DEPTH reads or writes of a file pending, in a region of
 * its own. The elevator decides which request is next, and I/O threads, the "device", execute it
 * with pread() or pwrite(). At the end the program prints how much each client got. One mutex
 * protects the queue of the library, since only one thread at a time may use it; it is not held
 * during I/O.
 *
 *     storage_engine ELEVATOR FILE [SECONDS]
 *
 * The program fills FILE with 64 MiB of its own. It refuses a file of another size, and what is no
 * file, because their contents would be lost.
 */
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <fcntl.h>
#include <hoistway.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { CLIENTS = 4, DEPTH = 8, IO_THREADS = 1, BLOCK = 16384, REGION_BLOCKS = 1024, SECTOR = 512 };

static const struct {
	const char *name;
	uint16_t op;
	uint32_t level; /* priority: 0 is the highest, 7 the lowest */
} PROFILES[CLIENTS] = {
	{"reads at level 0", HOISTWAY_READ, 0},
	{"reads at level 7", HOISTWAY_READ, 7},
	{"writes at level 0", HOISTWAY_WRITE, 0},
	{"writes at level 7", HOISTWAY_WRITE, 7},
};

struct client;

/* A pending read or write; the token of its bio is its address. */
struct io {
	struct client *client;
	struct io *next_free;
	uint64_t block;
	unsigned char data[BLOCK];
};

struct client {
	unsigned number;
	pthread_t thread;
	hoistway_context context;
	pthread_cond_t completed;
	struct io ios[DEPTH], *free;
	unsigned pending;
	uint64_t blocks; /* completed */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t work; /* for I/O threads: the queue may have a request */
static struct hoistway_queue *queue;
static struct client clients[CLIENTS];
static bool stopping, stopped;
static int file;

/* Ends the program because of the status of a call, or of something else if that is 0. */
static void fail(const char *what, int32_t status)
{
	fprintf(stderr, "storage_engine: %s", what);
	if (status < 0)
		fprintf(stderr, ": status %" PRId32, status);
	fprintf(stderr, "\n");
	exit(1);
}

static uint64_t now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Each block begins with its number, so that a read of a misplaced block is noticed. */
static void transfer(uint16_t op, struct io *io)
{
	off_t offset = (off_t)(io->block * BLOCK);
	ssize_t moved;
	if (op == HOISTWAY_WRITE) {
		memset(io->data, (int)io->client->number, BLOCK);
		memcpy(io->data, &io->block, sizeof io->block);
		moved = pwrite(file, io->data, BLOCK, offset);
	} else {
		moved = pread(file, io->data, BLOCK, offset);
	}
	const char *why = moved < 0 ? strerror(errno) : moved != BLOCK ? "only a part was transferred" : NULL;
	if (!why && memcmp(io->data, &io->block, sizeof io->block) != 0)
		why = "it has the data of another block";
	if (why) {
		const char *call = op == HOISTWAY_WRITE ? "write" : "read";
		fprintf(stderr, "storage_engine: cannot %s block %" PRIu64 ": %s\n", call, io->block, why);
		exit(1);
	}
}

/* Does what the library deferred: to be called after each call and the run that it caused. */
static void deferred_work(void)
{
	struct hoistway_work item;
	while (hoistway_next_work(queue, &item) == HOISTWAY_OK) {
		/* HOISTWAY_WORK_WAKE does not occur: without `nr_requests` no client sleeps. */
		if (item.what == HOISTWAY_WORK_RUN)
			pthread_cond_signal(&work);
	}
}

/* Waits until a client submits, a request completes, or the library's next timer is due. */
static void wait_for_work(void)
{
	uint64_t at_ns;
	if (hoistway_next_timer(queue, &at_ns) == HOISTWAY_OK) {
		struct timespec at = {.tv_sec = (time_t)(at_ns / 1000000000u), .tv_nsec = (long)(at_ns % 1000000000u)};
		pthread_cond_timedwait(&work, &lock, &at);
	} else {
		pthread_cond_wait(&work, &lock);
	}
}

static void *io_thread(void *unused)
{
	(void)unused;
	pthread_mutex_lock(&lock);
	while (!stopped) {
		struct hoistway_request request;
		uint64_t at_ns, token;
		uint32_t count;
		while (hoistway_next_timer(queue, &at_ns) == HOISTWAY_OK && at_ns <= now_ns())
			hoistway_timer(queue, now_ns());
		int32_t status = hoistway_next(queue, now_ns(), &request);
		deferred_work();
		if (status < 0)
			fail("hoistway_next", status);
		if (status != HOISTWAY_OK) {
			wait_for_work();
			continue;
		}
		struct io *io = (struct io *)(uintptr_t)request.token;
		pthread_cond_signal(&work); /* another I/O thread looks for the next request meanwhile */
		pthread_mutex_unlock(&lock);
		transfer(request.op, io);
		pthread_mutex_lock(&lock);
		/* Without merging a request has one token, that of `io`. */
		status = hoistway_complete(queue, request.id, now_ns(), &token, 1, &count);
		if (status < 0)
			fail("hoistway_complete", status);
		deferred_work();
		io->next_free = io->client->free;
		io->client->free = io;
		io->client->pending--;
		io->client->blocks += !stopping;
		pthread_cond_signal(&io->client->completed);
	}
	pthread_mutex_unlock(&lock);
	return NULL;
}

static void *client_thread(void *argument)
{
	struct client *client = argument;
	uint64_t random = client->number + 1;
	pthread_mutex_lock(&lock);
	while (!stopping) {
		struct io *io = client->free;
		if (!io) {
			pthread_cond_wait(&client->completed, &lock);
			continue;
		}
		client->free = io->next_free;
		random = random * 6364136223846793005u + 1442695040888963407u;
		io->block = (uint64_t)client->number * REGION_BLOCKS + (random >> 33) % REGION_BLOCKS;
		struct hoistway_bio bio = {
			.token = (uintptr_t)io,
			.context = client->context,
			.sector = io->block * (BLOCK / SECTOR),
			.sectors = BLOCK / SECTOR,
			.op = PROFILES[client->number].op,
			/* The client waits for its writes, too, and more will follow. */
			.flags = HOISTWAY_SYNC | HOISTWAY_IDLE,
		};
		struct hoistway_submitted submitted;
		int32_t status = hoistway_submit(queue, &bio, now_ns(), &submitted);
		if (status < 0)
			fail("hoistway_submit", status);
		client->pending++;
		deferred_work();
		pthread_cond_signal(&work); /* without plugging the queue is run after each bio */
	}
	while (client->pending > 0)
		pthread_cond_wait(&client->completed, &lock);
	hoistway_context_exit(queue, client->context, now_ns());
	deferred_work();
	pthread_mutex_unlock(&lock);
	return NULL;
}

static void create_queue(const char *elevator)
{
	struct hoistway_capacity capacity = {.requests = CLIENTS * DEPTH, .contexts = CLIENTS};
	struct hoistway_config config;
	int32_t index = hoistway_elevator_index(elevator, strlen(elevator));
	if (index < 0) {
		fprintf(stderr, "storage_engine: no elevator is named \"%s\"; there are", elevator);
		for (uint32_t i = 0; i < hoistway_elevator_count(); i++) {
			char name[64];
			if (hoistway_elevator_name(i, name, sizeof name) > 0)
				fprintf(stderr, " %s", name);
		}
		fprintf(stderr, "\n");
		exit(2);
	}
	hoistway_config_default(&config);
	config.layer = 5; /* the block layer of Linux 6.1 */
	config.hz = 1000;
	config.nr_requests = 0; /* limited by the capacity */
	config.plugging = 0;
	config.merging = 0;
	size_t size = hoistway_queue_size(&capacity);
	queue = aligned_alloc(HOISTWAY_ALIGNMENT, size);
	if (!queue)
		fail("no memory for the queue", 0);
	int32_t status = hoistway_queue_init(queue, size, &capacity, &config, (uint32_t)index, now_ns());
	if (status < 0)
		fail("hoistway_queue_init", status);
}

static void open_file(const char *path)
{
	const off_t size = (off_t)CLIENTS * REGION_BLOCKS * BLOCK;
	struct stat found;
	file = open(path, O_RDWR | O_CREAT, 0666);
	if (file < 0 || fstat(file, &found)) {
		fprintf(stderr, "storage_engine: %s: %s\n", path, strerror(errno));
		exit(1);
	}
	if (!S_ISREG(found.st_mode) || (found.st_size != 0 && found.st_size != size)) {
		fprintf(stderr, "storage_engine: %s would be overwritten; a new file, or one of an earlier run, is right\n", path);
		exit(1);
	}
}

int main(int argc, char **argv)
{
	char *end = "";
	double seconds = argc > 3 ? strtod(argv[3], &end) : 2;
	if (argc < 3 || argc > 4 || *end || !(seconds > 0 && seconds <= 3600)) {
		fprintf(stderr, "usage: storage_engine ELEVATOR FILE [SECONDS]\n");
		return 2;
	}
	create_queue(argv[1]);
	open_file(argv[2]);
	pthread_condattr_t monotonic; /* timers of the library are in the clock of now_ns() */
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&work, &monotonic);
	pthread_condattr_destroy(&monotonic);

	static struct io filler;
	for (filler.client = clients; filler.block < CLIENTS * REGION_BLOCKS; filler.block++)
		transfer(HOISTWAY_WRITE, &filler);
	for (unsigned i = 0; i < CLIENTS; i++) {
		struct client *client = &clients[i];
		client->number = i;
		for (unsigned j = 0; j < DEPTH; j++) {
			client->ios[j].client = client;
			client->ios[j].next_free = client->free;
			client->free = &client->ios[j];
		}
		pthread_cond_init(&client->completed, NULL);
		int32_t status =
			hoistway_context_create(queue, i + 1, HOISTWAY_CLASS_BE, PROFILES[i].level, 0, &client->context);
		if (status < 0)
			fail("hoistway_context_create", status);
	}

	pthread_t io_threads[IO_THREADS];
	for (unsigned i = 0; i < IO_THREADS; i++)
		if (pthread_create(&io_threads[i], NULL, io_thread, NULL))
			fail("no I/O thread", 0);
	for (unsigned i = 0; i < CLIENTS; i++)
		if (pthread_create(&clients[i].thread, NULL, client_thread, &clients[i]))
			fail("no client thread", 0);
	struct timespec pause = {.tv_sec = (time_t)seconds, .tv_nsec = (long)((seconds - (double)(time_t)seconds) * 1e9)};
	nanosleep(&pause, NULL);

	pthread_mutex_lock(&lock);
	stopping = true;
	for (unsigned i = 0; i < CLIENTS; i++)
		pthread_cond_signal(&clients[i].completed);
	pthread_mutex_unlock(&lock);
	for (unsigned i = 0; i < CLIENTS; i++)
		pthread_join(clients[i].thread, NULL);
	pthread_mutex_lock(&lock);
	stopped = true;
	pthread_cond_broadcast(&work);
	pthread_mutex_unlock(&lock);
	for (unsigned i = 0; i < IO_THREADS; i++)
		pthread_join(io_threads[i], NULL);

	uint64_t total = 0;
	for (unsigned i = 0; i < CLIENTS; i++)
		total += clients[i].blocks;
	printf("%s: %.0f MB/s\n", argv[1], (double)total * BLOCK / 1e6 / seconds);
	for (unsigned i = 0; i < CLIENTS; i++)
		printf("%-17s %5.1f %%\n", PROFILES[i].name, total ? 100.0 * (double)clients[i].blocks / (double)total : 0);
	free(queue);
	close(file);
	return 0;
}
