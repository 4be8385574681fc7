-- A small table to try `zibaldone sources` with: sqlite3 helpdesk.db < examples/helpdesk.sql
CREATE TABLE tickets (
    id INTEGER PRIMARY KEY,
    title TEXT NOT NULL,
    body TEXT NOT NULL,
    status TEXT NOT NULL,
    priority INTEGER NOT NULL,
    tags TEXT,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL
);
INSERT INTO tickets VALUES
(1, 'Invoices arrive twice', 'Since the migration every customer in Austria gets each invoice two times. The second copy has the same number.', 'open', 2, 'billing,email', '2026-03-02 08:15:00', '2026-03-02 08:15:00'),
(2, 'Password reset mail never comes', 'After the holidays three people forgot their password. They ask for a reset, but no mail arrives, not even in the spam folder.', 'open', 3, 'login,email', '2026-03-03 09:40:00', '2026-03-03 10:05:00'),
(3, 'Printer on floor two', 'It jams after every tenth page. Opening the back and closing it again helps for an hour.', 'waiting', 1, 'hardware', '2026-03-03 14:20:00', '2026-03-04 07:30:00'),
(4, 'Export stops at 65536 rows', 'The spreadsheet export of the order list ends without a warning. Smaller lists are complete.', 'closed', 2, 'export,orders', '2026-03-05 11:00:00', '2026-03-09 16:45:00'),
(5, 'Map shows the old warehouse', 'Drivers are sent to the building that we left in January. The address in the settings is right.', 'open', 2, 'delivery', '2026-03-06 13:10:00', '2026-03-06 13:10:00');
