package store

// levelCount is how many levels there are: minute, quarter hour, hour, day, ever.
const levelCount = 5
