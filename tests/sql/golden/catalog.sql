-- The tables that the golden statements are about.
CREATE TABLE stocks (
    symbol TEXT PRIMARY KEY, sector TEXT, per DOUBLE, risk DOUBLE, price DOUBLE,
    lots BIGINT, rank INT, active BOOLEAN, listed DATE, traded TIMESTAMP, logo BINARY
);
CREATE TABLE reviews (id BIGINT PRIMARY KEY, symbol TEXT, rating DOUBLE, report TEXT, author TEXT);
CREATE TABLE authors (author TEXT, rank BIGINT, col1 DOUBLE, "Odd Name 1" BIGINT, PRIMARY KEY (author));
CREATE TABLE market (topic TEXT, lot BIGINT, price DOUBLE, place POINT) WITH (rows = 'constraints');
