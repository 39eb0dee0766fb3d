/*
 * A storage engine whose I/O an elevator orders.
 *
 * Each client is a thread that keeps up to DEPTH reads or writes of a file pending, in a region of
 * its own. io_scheduler.c puts them into an elevator and executes them in the order that it
 * decides. At the end the program prints how much each client got.
 *
 *     storage_engine ELEVATOR FILE [SECONDS]
 *
 * The program fills FILE with 64 MiB of its own. It refuses a file of another size, and what is no
 * file, because their contents would be lost.
 */
#define _POSIX_C_SOURCE 200809L
#include "io_scheduler.h"

#include <errno.h>
#include <fcntl.h>
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

/* A read or write of a block. */
struct io {
	struct io_request request;
	struct client *client;
	struct io *next_free;
	uint64_t block;
	unsigned char data[BLOCK];
};

struct client {
	unsigned number;
	pthread_t thread;
	hoistway_context context;
	pthread_mutex_t lock;
	pthread_cond_t completed;
	struct io ios[DEPTH], *free;
	unsigned pending;
	uint64_t blocks; /* completed */
	bool stopping;
};

static struct io_scheduler *scheduler;
static struct client clients[CLIENTS];
static int file;

static void fail(const char *what)
{
	fprintf(stderr, "storage_engine: %s\n", what);
	exit(1);
}

/* Transfers a block. Each begins with its number, so that a read of a misplaced one is noticed. */
static void transfer(struct io *io, bool is_write)
{
	off_t offset = (off_t)(io->block * BLOCK);
	ssize_t moved;
	if (is_write) {
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
		const char *call = is_write ? "write" : "read";
		fprintf(stderr, "storage_engine: cannot %s block %" PRIu64 ": %s\n", call, io->block, why);
		exit(1);
	}
}

static void execute(struct io_request *request)
{
	transfer((struct io *)request, request->bio.op == HOISTWAY_WRITE);
}

static void completed(struct io_request *request)
{
	struct io *io = (struct io *)request;
	struct client *client = io->client;
	pthread_mutex_lock(&client->lock);
	io->next_free = client->free;
	client->free = io;
	client->pending--;
	client->blocks += !client->stopping;
	pthread_cond_signal(&client->completed);
	pthread_mutex_unlock(&client->lock);
}

static void *client_thread(void *argument)
{
	struct client *client = argument;
	uint64_t random = client->number + 1;
	pthread_mutex_lock(&client->lock);
	while (!client->stopping) {
		struct io *io = client->free;
		if (!io) {
			pthread_cond_wait(&client->completed, &client->lock);
			continue;
		}
		client->free = io->next_free;
		client->pending++;
		pthread_mutex_unlock(&client->lock);
		random = random * 6364136223846793005u + 1442695040888963407u;
		io->block = (uint64_t)client->number * REGION_BLOCKS + (random >> 33) % REGION_BLOCKS;
		io->request.bio = (struct hoistway_bio){
			.context = client->context,
			.sector = io->block * (BLOCK / SECTOR),
			.sectors = BLOCK / SECTOR,
			.op = PROFILES[client->number].op,
			/* The client waits for its writes, too, and more will follow. */
			.flags = HOISTWAY_SYNC | HOISTWAY_IDLE,
		};
		io_scheduler_submit(scheduler, &io->request);
		pthread_mutex_lock(&client->lock);
	}
	while (client->pending > 0)
		pthread_cond_wait(&client->completed, &client->lock);
	pthread_mutex_unlock(&client->lock);
	io_scheduler_close(scheduler, client->context);
	return NULL;
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

static void fill_file(void)
{
	static struct io filler;
	for (filler.client = clients; filler.block < CLIENTS * REGION_BLOCKS; filler.block++)
		transfer(&filler, true);
}

static void start_client(unsigned number)
{
	struct client *client = &clients[number];
	client->number = number;
	client->context = io_scheduler_open(scheduler, number + 1, PROFILES[number].level);
	for (unsigned i = 0; i < DEPTH; i++) {
		client->ios[i].client = client;
		client->ios[i].next_free = client->free;
		client->free = &client->ios[i];
	}
	pthread_mutex_init(&client->lock, NULL);
	pthread_cond_init(&client->completed, NULL);
	if (pthread_create(&client->thread, NULL, client_thread, client))
		fail("no client thread");
}

static void stop_client(struct client *client)
{
	pthread_mutex_lock(&client->lock);
	client->stopping = true;
	pthread_cond_signal(&client->completed);
	pthread_mutex_unlock(&client->lock);
}

int main(int argc, char **argv)
{
	char *end = "";
	double seconds = argc > 3 ? strtod(argv[3], &end) : 2;
	if (argc < 3 || argc > 4 || *end || !(seconds > 0 && seconds <= 3600)) {
		fprintf(stderr, "usage: storage_engine ELEVATOR FILE [SECONDS]\n");
		return 2;
	}
	if (hoistway_elevator_index(argv[1], strlen(argv[1])) < 0) {
		fprintf(stderr, "storage_engine: no elevator is named \"%s\"; there are", argv[1]);
		for (uint32_t i = 0; i < hoistway_elevator_count(); i++) {
			char name[64];
			if (hoistway_elevator_name(i, name, sizeof name) > 0)
				fprintf(stderr, " %s", name);
		}
		fprintf(stderr, "\n");
		return 2;
	}
	open_file(argv[2]);
	fill_file();
	scheduler = io_scheduler_create(&(struct io_scheduler_config){
		.elevator = argv[1],
		.requests = CLIENTS * DEPTH,
		.contexts = CLIENTS,
		.io_threads = IO_THREADS,
		.execute = execute,
		.completed = completed,
	});
	if (!scheduler)
		fail("no memory or no I/O thread");

	for (unsigned i = 0; i < CLIENTS; i++)
		start_client(i);
	struct timespec pause = {.tv_sec = (time_t)seconds, .tv_nsec = (long)((seconds - (double)(time_t)seconds) * 1e9)};
	nanosleep(&pause, NULL);
	for (unsigned i = 0; i < CLIENTS; i++)
		stop_client(&clients[i]);
	for (unsigned i = 0; i < CLIENTS; i++)
		pthread_join(clients[i].thread, NULL);
	io_scheduler_destroy(scheduler);

	uint64_t total = 0;
	for (unsigned i = 0; i < CLIENTS; i++)
		total += clients[i].blocks;
	printf("%s: %.0f MB/s\n", argv[1], (double)total * BLOCK / 1e6 / seconds);
	for (unsigned i = 0; i < CLIENTS; i++)
		printf("%-17s %5.1f %%\n", PROFILES[i].name, total ? 100.0 * (double)clients[i].blocks / (double)total : 0);
	close(file);
	return 0;
}
