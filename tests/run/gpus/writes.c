/* The only program in an empty container: tries to write, and ends with the error's number. */
#include <errno.h>
#include <fcntl.h>

int main(void) { return open("/etc/written", O_CREAT | O_RDWR, 0600) < 0 ? errno : 0; }
