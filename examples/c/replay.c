/*
 * Replays requests through an elevator on a device that serves each request in the same time, and
 * prints the order of dispatch.
 *
 *     replay ELEVATOR FILE [SERVICE_US]
 *
 * Each line of FILE is a request: its time of arrival in microseconds, the number of its process,
 * `read` or `write`, the first sector and the number of sectors. Lines are in order of time; a `#`
 * begins a comment. Time is virtual, so the output is the same on every machine.
 */
#include <errno.h>
#include <hoistway.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PROCESSES_MAX = 64 };

/* A line of the file; its index is the token of its bio. */
struct arrival {
	uint64_t at_us;
	uint32_t pid;
	uint16_t op;
	uint64_t sector;
	uint32_t sectors;
};

static struct arrival *arrivals;
static size_t arrivals_len;

static struct {
	uint32_t pid;
	hoistway_context context;
} processes[PROCESSES_MAX];
static size_t processes_len;

static struct hoistway_queue *queue;
static uint64_t now_ns;
static bool busy; /* the device serves `served` until `done_ns` */
static struct hoistway_request served;
static uint64_t done_ns;
static bool must_run;
static int32_t state = HOISTWAY_EMPTY; /* what hoistway_next() returned last */

/* Ends the program because of the status of a call, or of something else if that is 0. */
static void fail(const char *what, int32_t status)
{
	fprintf(stderr, "replay: %s", what);
	if (status < 0)
		fprintf(stderr, ": %s", hoistway_status_text(status));
	fprintf(stderr, "\n");
	exit(1);
}

/* Returns the status of a call; notes that the queue must be run, and fails for errors. */
static int32_t check(const char *call, int32_t status)
{
	if (status < 0)
		fail(call, status);
	must_run |= status == HOISTWAY_RUN;
	return status;
}

/* Reads a number of a line, and says which is wrong. */
static uint64_t number(const char *path, unsigned line, const char *name, const char *text, uint64_t min, uint64_t max)
{
	char *end;
	unsigned long long value = text ? strtoull(text, &end, 10) : 0;
	if (!text || *text < '0' || *text > '9' || *end || value < min || value > max) {
		fprintf(stderr, "replay: %s:%u: %s is \"%s\"; a number from %" PRIu64 " to %" PRIu64 " is right\n", path, line,
		        name, text ? text : "", min, max);
		exit(1);
	}
	return value;
}

static void read_arrivals(const char *path)
{
	char text[256];
	uint64_t last_us = 0;
	size_t room = 0;
	FILE *file = fopen(path, "r");
	if (!file) {
		fprintf(stderr, "replay: %s: %s\n", path, strerror(errno));
		exit(1);
	}
	for (unsigned line = 1; fgets(text, sizeof text, file); line++) {
		static const char *blanks = " \t\r\n";
		if (!strchr(text, '\n') && !feof(file)) {
			fprintf(stderr, "replay: %s:%u: the line is longer than %zu bytes\n", path, line, sizeof text - 2);
			exit(1);
		}
		text[strcspn(text, "#")] = 0;
		const char *word = strtok(text, blanks);
		if (!word)
			continue;
		if (arrivals_len == room) {
			room = room ? 2 * room : 64;
			arrivals = realloc(arrivals, room * sizeof *arrivals);
			if (!arrivals)
				fail("no memory for the requests", 0);
		}
		struct arrival *arrival = &arrivals[arrivals_len++];
		arrival->at_us = number(path, line, "the time", word, last_us, UINT32_MAX);
		last_us = arrival->at_us;
		arrival->pid = (uint32_t)number(path, line, "the process", strtok(NULL, blanks), 1, UINT32_MAX);
		const char *op = strtok(NULL, blanks);
		if (!op || (strcmp(op, "read") && strcmp(op, "write"))) {
			fprintf(stderr, "replay: %s:%u: the operation is \"%s\"; read or write is right\n", path, line, op ? op : "");
			exit(1);
		}
		arrival->op = *op == 'r' ? HOISTWAY_READ : HOISTWAY_WRITE;
		arrival->sector = number(path, line, "the sector", strtok(NULL, blanks), 0, UINT64_C(1) << 40);
		arrival->sectors = (uint32_t)number(path, line, "the length", strtok(NULL, blanks), 1, 2048);
		const char *more = strtok(NULL, blanks);
		if (more) {
			fprintf(stderr, "replay: %s:%u: \"%s\" is a sixth word; a request has five\n", path, line, more);
			exit(1);
		}
	}
	if (ferror(file)) {
		fprintf(stderr, "replay: %s: %s\n", path, strerror(errno));
		exit(1);
	}
	fclose(file);
}

static void create_queue(const char *elevator, uint32_t requests)
{
	struct hoistway_capacity capacity = {.requests = requests, .contexts = PROCESSES_MAX, .merged_bios = requests};
	struct hoistway_config config;
	int32_t index = hoistway_elevator_index(elevator, strlen(elevator));
	if (index < 0) {
		fprintf(stderr, "replay: no elevator is named \"%s\"; there are", elevator);
		for (uint32_t i = 0; i < hoistway_elevator_count(); i++) {
			char name[64];
			if (hoistway_elevator_name(i, name, sizeof name) > 0)
				fprintf(stderr, " %s", name);
		}
		fprintf(stderr, "\n");
		exit(2);
	}
	check("hoistway_config_default", hoistway_config_default(&config));
	config.nr_requests = 0; /* limited by the capacity: no process sleeps until it gets a request */
	config.plugging = 0;
	size_t size = hoistway_queue_size(&capacity);
	queue = aligned_alloc(HOISTWAY_ALIGNMENT, size);
	if (!queue)
		fail("no memory for the queue", 0);
	check("hoistway_queue_init", hoistway_queue_init(queue, size, &capacity, &config, (uint32_t)index, 0));
}

static hoistway_context context_of(uint32_t pid)
{
	for (size_t i = 0; i < processes_len; i++)
		if (processes[i].pid == pid)
			return processes[i].context;
	if (processes_len == PROCESSES_MAX)
		fail("more than 64 processes", 0);
	processes[processes_len].pid = pid;
	hoistway_context *context = &processes[processes_len].context;
	check("hoistway_context_create", hoistway_context_create(queue, pid, HOISTWAY_CLASS_BE, 4, 0, context));
	return processes[processes_len++].context;
}

static void submit(size_t token)
{
	const struct arrival *arrival = &arrivals[token];
	struct hoistway_bio bio = {
		.token = token,
		.context = context_of(arrival->pid),
		.sector = arrival->sector,
		.sectors = arrival->sectors,
		.op = arrival->op,
	};
	struct hoistway_submitted submitted;
	check("hoistway_submit", hoistway_submit(queue, &bio, now_ns, &submitted));
	must_run = true;
}

/* The device is done: prints the request with the lines that it served. */
static void complete(void)
{
	uint64_t *tokens = malloc(served.bios_max * sizeof *tokens);
	uint32_t count;
	if (!tokens)
		fail("no memory for tokens", 0);
	check("hoistway_complete", hoistway_complete(queue, served.id, now_ns, tokens, served.bios_max, &count));
	uint64_t first_us = arrivals[tokens[0]].at_us;
	for (uint32_t i = 1; i < count; i++)
		if (arrivals[tokens[i]].at_us < first_us)
			first_us = arrivals[tokens[i]].at_us;
	printf("  %10" PRIu64 "  bios %" PRIu32 "\n", now_ns / 1000 - first_us, count);
	free(tokens);
	busy = false;
	must_run = true;
}

/* Takes the next request if the device is idle. */
static void run(uint64_t service_ns)
{
	must_run = false;
	if (busy)
		return;
	state = check("hoistway_next", hoistway_next(queue, now_ns, &served));
	if (state != HOISTWAY_OK)
		return;
	busy = true;
	done_ns = now_ns + service_ns;
	printf("%9" PRIu64 "  %7" PRIu32 "  %-5s  %8" PRIu64 "  %7" PRIu32, now_ns / 1000, served.pid,
	       served.op == HOISTWAY_WRITE ? "write" : "read", served.sector, served.sectors);
}

/* Does what the library deferred, and runs the queue, until nothing is left to do at this time. */
static void settle(uint64_t service_ns)
{
	do {
		struct hoistway_work work;
		if (must_run)
			run(service_ns);
		while (hoistway_next_work(queue, &work) == HOISTWAY_OK)
			must_run |= work.what == HOISTWAY_WORK_RUN;
	} while (must_run);
}

int main(int argc, char **argv)
{
	if (argc < 3 || argc > 4) {
		fprintf(stderr, "usage: replay ELEVATOR FILE [SERVICE_US]\n");
		return 2;
	}
	uint64_t service_ns = 1000 * (argc > 3 ? number("argument", 3, "SERVICE_US", argv[3], 1, 10000000) : 5000);
	read_arrivals(argv[2]);
	create_queue(argv[1], arrivals_len ? (uint32_t)arrivals_len : 1);
	printf("  time us  process  op       sector  sectors  latency us\n");
	size_t next = 0;
	for (;;) {
		/* The earliest event: a completion, a timer or an arrival. */
		uint64_t timer_ns = UINT64_MAX, arrival_ns = UINT64_MAX, completion_ns = busy ? done_ns : UINT64_MAX;
		check("hoistway_next_timer", hoistway_next_timer(queue, &timer_ns));
		if (next < arrivals_len)
			arrival_ns = arrivals[next].at_us * 1000;
		if (!busy && next == arrivals_len && state == HOISTWAY_EMPTY)
			break;
		uint64_t at_ns = completion_ns < timer_ns ? completion_ns : timer_ns;
		at_ns = arrival_ns < at_ns ? arrival_ns : at_ns;
		if (at_ns == UINT64_MAX)
			fail("requests wait for no event", 0);
		now_ns = at_ns > now_ns ? at_ns : now_ns;
		if (completion_ns == at_ns)
			complete();
		else if (timer_ns == at_ns)
			check("hoistway_timer", hoistway_timer(queue, now_ns));
		else
			submit(next++);
		settle(service_ns);
	}
	free(queue);
	free(arrivals);
	return 0;
}
