-- The rows of seals. Their keys end with the seal's identity (epoch, partition,
-- floor, offset): a seal that comes twice meets its own rows, and of two rows with
-- one key the fuller stays. In item_minutes, which is large, two columns are kept as
-- what they differ by from others: that is nearly always the same. Read the counts by the views *_exact, which are right
-- before such rows have met, too.
--
-- An acknowledged insert must outlast a power cut (fsync): what it came from may be
-- gone from the log by then.
--
-- Keys begin with the week: what is asked of some days reads only their weeks, and
-- what is asked of an item reads one place a week. Further back in a key the minute
-- stands as a number, so that a condition on the minute is one on the week.

CREATE TABLE IF NOT EXISTS {{.}}.item_minutes (
    minute    DateTime('UTC') COMMENT 'event time, start of the minute' CODEC(Delta, ZSTD(1)),
    type      LowCardinality(String) COMMENT 'of the event; (other) where rest says type',
    dimension LowCardinality(String) COMMENT 'empty: the item as such; (outcome): events that do not count',
    value     LowCardinality(String) COMMENT 'of the dimension; (other) where rest says value',
    rest      Enum8('none' = 0, 'type' = 1, 'value' = 2, 'type and value' = 3) COMMENT 'which of them stand for all beyond a limit',
    kind      Enum8('item' = 0, 'site' = 1, 'other' = 2) COMMENT 'other: all items that were beyond a limit, together',
    item      String COMMENT 'empty unless kind is item' CODEC(ZSTD(1)),
    events    UInt64 COMMENT 'that count, exactly' CODEC(T64, ZSTD(1)),
    beyond    Int64 COMMENT 'reached less events' CODEC(T64, ZSTD(1)),
    reached   UInt64 ALIAS toUInt64(events + beyond) COMMENT 'that reached the viewers: repeats too',
    epoch     UInt64 COMMENT 'E of the seal: which log, read from its beginning' CODEC(ZSTD(1)),
    partition UInt16 COMMENT 'of the log' CODEC(ZSTD(1)),
    ahead     Int32 COMMENT 'minutes from minute to floor' CODEC(T64, ZSTD(1)),
    floor     DateTime('UTC') ALIAS minute + 60 * ahead COMMENT 'F of the seal: all minutes before it were closed',
    offset    Int64 COMMENT 'S of the seal: it holds records before this offset' CODEC(Delta, ZSTD(1))
) ENGINE = ReplacingMergeTree(events)
PARTITION BY toYYYYMM(minute)
ORDER BY (toMonday(minute), type, dimension, value, rest, kind, item, toUnixTimestamp(minute), epoch, partition, ahead, offset)
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1, ttl_only_drop_parts = 1, index_granularity = 2048;

-- Who came, in minutes, hours and days: a set of tokens, or where there are more than
-- 1,024 of registers. A union is idempotent: rows of one key are merged in the background,
-- and may then have both. Granules are small: of each some rows are wanted, and reading
-- begins at its first.

CREATE TABLE IF NOT EXISTS {{.}}.item_viewers (
    level     Enum8('minute' = 0, 'hour' = 1, 'day' = 2) COMMENT 'what the row is about; each level has all viewers',
    start     DateTime('UTC') COMMENT 'of the minute, hour or day, in UTC' CODEC(Delta, ZSTD(1)),
    type      LowCardinality(String) COMMENT 'this and the next five: as in item_minutes',
    dimension LowCardinality(String),
    value     LowCardinality(String),
    rest      Enum8('none' = 0, 'type' = 1, 'value' = 2, 'type and value' = 3),
    kind      Enum8('item' = 0, 'site' = 1, 'other' = 2) COMMENT 'site: all items together',
    item      String CODEC(ZSTD(1)),
    viewers   SimpleAggregateFunction(groupUniqArrayArray, Array(UInt32)) COMMENT 'read by tidemark_union: below 2^26 of a viewer 25 bits of the keyed hash, register and the rest, else a register of HyperLogLog with 2^14, and its rank' CODEC(T64, ZSTD(1))
) ENGINE = AggregatingMergeTree
PARTITION BY toYYYYMM(start)
ORDER BY (level, type, dimension, value, rest, kind, item, start)
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1, ttl_only_drop_parts = 1,
    index_granularity = 256, index_granularity_bytes = 131072;

-- The latest that was said of an item: of two texts the one with the higher (event
-- time, then bytes).

CREATE TABLE IF NOT EXISTS {{.}}.items (
    item  String,
    title SimpleAggregateFunction(max, Tuple(DateTime64(3, 'UTC'), String)),
    url   SimpleAggregateFunction(max, Tuple(DateTime64(3, 'UTC'), String)),
    image SimpleAggregateFunction(max, Tuple(DateTime64(3, 'UTC'), String))
) ENGINE = AggregatingMergeTree
ORDER BY item
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1;

CREATE TABLE IF NOT EXISTS {{.}}.outcomes (
    minute    DateTime('UTC') COMMENT 'event time, or where that is unusable, the timestamp of the record' CODEC(Delta, ZSTD(1)),
    outcome   LowCardinality(String),
    reason    LowCardinality(String) COMMENT 'of the malformed',
    records   UInt64,
    epoch     UInt64,
    partition UInt16,
    floor     DateTime('UTC'),
    offset    Int64
) ENGINE = ReplacingMergeTree(records)
PARTITION BY toYYYYMM(minute)
ORDER BY (toDate(minute), outcome, reason, toUnixTimestamp(minute), epoch, partition, floor, offset)
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1, ttl_only_drop_parts = 1;

-- One row a seal, written after all its others: where it is, they are.

CREATE TABLE IF NOT EXISTS {{.}}.seals (
    epoch       UInt64,
    partition   UInt16,
    floor       DateTime('UTC'),
    offset      Int64,
    log         String COMMENT 'id of the log',
    from_floor  DateTime('UTC') COMMENT 'of the seal before',
    from_offset Int64,
    replay      Int64 COMMENT 'R: the log is read from here after a crash',
    settings    String COMMENT 'V: the settings in force',
    head_offset Int64 COMMENT 'H: the last record before offset',
    head_hash   UInt64,
    rows        UInt64 COMMENT 'in item_minutes'
) ENGINE = ReplacingMergeTree
ORDER BY (epoch, partition, floor, offset)
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1;

-- Whose database this is: one row.

CREATE TABLE IF NOT EXISTS {{.}}.deployment (
    key      String COMMENT 'id of the key of the hashes',
    topic    String,
    consumer String COMMENT 'the consumer group'
) ENGINE = MergeTree
ORDER BY ()
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1;
