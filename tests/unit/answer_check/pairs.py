"""Hand-made pairs of a source and what an answer says of it: (source, claim, what the check should say)."""

OK, WEAK, NO = "supported", "weak", "unsupported"

LEAVE = "Employees get 10 paid days of sick leave a year. Unused days do not carry over to the next year."
DOSE = "Take 5 mg of the tablet twice a day. Never take more than 20 mg in 24 hours."
FUND = "The fund had 5,000 members in 2023 and spent $1.2 million on grants."
PARENTAL = "All employees except contractors may take parental leave. The leave must begin before the child turns one."
TRAVEL = "You may book first class only if no other seat is available. Receipts are required for expenses over $75."
UNPAID = "Unpaid leave is granted for 10 days a year. Insured parcels arrive within a week."
PEOPLE = "Alice Morgan reports to Brian Lee, the director of finance in Chicago."
DATES = "The contract starts on 5 March 2024 and ends on 31 December 2025. Notice is given by 2024-11-30."
ERROR = "E-1042 means that the connection to the server timed out after 30 seconds. Restart the client with v2.1.3."
LIMITS = "Requests must be answered within 5-10 working days. At least 3 reviewers must approve each change."

ENGLISH = [
    (LEAVE, "Employees get 10 paid days of sick leave a year.", OK),
    (LEAVE, "You get ten days of paid sick leave per year.", OK),
    (LEAVE, "Unused days don't carry over.", OK),
    (LEAVE, "Sick leave is 10 days a year, and unused days do not carry over to the next year.", OK),
    (LEAVE, "Employees get 12 paid days of sick leave a year.", NO),
    (LEAVE, "Employees get twelve paid days of sick leave a year.", NO),
    (LEAVE, "Employees get 10 paid weeks of sick leave a year.", NO),
    (LEAVE, "Unused days carry over to the next year.", NO),
    (LEAVE, "Employees do not get 10 paid days of sick leave a year.", NO),
    (LEAVE, "Interns are paid monthly by bank transfer.", NO),
    (DOSE, "Take 5 mg twice a day.", OK),
    (DOSE, "Take 0.005 g of the tablet twice a day.", OK),
    (DOSE, "Take 5 g of the tablet twice a day.", NO),
    (DOSE, "Do not take more than 20 mg in 24 hours.", OK),
    (DOSE, "Take at least 20 mg in 24 hours.", NO),
    (DOSE, "Take 20 mg of the tablet twice a day.", WEAK),
    (FUND, "In 2023 the fund had 5000 members.", OK),
    (FUND, "The fund had 5 000 members in 2023.", OK),
    (FUND, "The fund had 5 members in 2023.", NO),
    (FUND, "The fund had 5,000 members in 2024.", NO),
    (FUND, "The fund spent 1,200,000 dollars on grants.", OK),
    (FUND, "The fund spent $1.2 billion on grants.", NO),
    (FUND, "The fund spent €1.2 million on grants.", NO),
    (PARENTAL, "All employees except contractors may take parental leave.", OK),
    (PARENTAL, "All employees may take parental leave.", WEAK),
    (PARENTAL, "Contractors are excluded from parental leave.", OK),
    (PARENTAL, "The leave must begin after the child turns one.", NO),
    (PARENTAL, "All employees except managers may take parental leave.", WEAK),
    (TRAVEL, "First class may be booked only if no other seat is available.", OK),
    (TRAVEL, "You may book first class.", WEAK),
    (TRAVEL, "Receipts are required for expenses over $75.", OK),
    (TRAVEL, "Receipts are optional for expenses over $75.", NO),
    (TRAVEL, "Receipts are not required for expenses over $75.", NO),
    (TRAVEL, "Receipts are required for expenses under $75.", NO),
    (UNPAID, "Unpaid leave of 10 days a year is granted.", OK),
    (UNPAID, "Non-insured parcels that are unpaid wait for a week.", NO),
    ("Paid and unpaid leave is granted for 10 days.", "Paid leave is granted for 10 days.", OK),
    ("Non-profit groups pay no fee.", "Nonprofit groups pay no fee.", OK),
    ("Leave of 30 days can be taken once paid days are used.", "Unpaid leave of 30 days can be taken.", OK),
    ("The ticket is non-refundable but may be changed once.", "The ticket may be changed once.", OK),
    ("A non-negotiable fee of 40 EUR is charged.", "A fee of 40 EUR is charged.", OK),
    ("All new employees sign an NDA on day one.", "All new employees sign a non-disclosure NDA on day one.", OK),
    ("People from outside the EU need a visa.", "Non-EU people need a visa.", OK),
    ("Smoking is prohibited in all rooms.", "All rooms are non-smoking.", OK),
    ("The deposit is non-refundable.", "The deposit cannot be refunded.", OK),
    ("The deposit of 200 EUR is non-refundable.", "The deposit of 200 EUR is refundable.", NO),
    (UNPAID, "Paid leave is granted for 10 days a year.", NO),
    (UNPAID, "Leave that is not paid is granted for 10 days a year.", OK),
    (UNPAID, "Uninsured parcels arrive within a week.", NO),
    (UNPAID, "Non-insured parcels arrive within a week.", NO),
    (PEOPLE, "Alice Morgan reports to Brian Lee.", OK),
    (PEOPLE, "Brian Lee is the director of finance.", OK),
    (PEOPLE, "Alice Morgan reports to Carla Lee.", NO),
    (PEOPLE, "Alice Morgan reports to Brian Lee, the director of finance in Boston.", NO),
    (PEOPLE, "Alice Morgan reports to Brian Lee, the director of marketing in Chicago.", WEAK),
    (PEOPLE, "Brian Lee reports to Alice Morgan, the director of finance in Chicago.", WEAK),
    (DATES, "The contract starts on March 5, 2024.", OK),
    (DATES, "The contract starts on 2024-03-05.", OK),
    (DATES, "The contract starts on 05.03.2024.", OK),
    (DATES, "The contract starts in March 2024.", OK),
    (DATES, "The contract starts on 6 March 2024.", NO),
    (DATES, "The contract ends on 31 December 2024.", NO),
    (DATES, "Notice is given by 30 November 2024.", OK),
    (ERROR, "E-1042 means that the connection timed out after 30 seconds.", OK),
    (ERROR, "E-1043 means that the connection timed out after 30 seconds.", NO),
    (ERROR, "Restart the client with v2.1.4.", NO),
    (ERROR, "E-1042 means that the connection timed out after half a minute or 30 s.", OK),
    (LIMITS, "Requests are answered within 5 to 10 working days.", OK),
    (LIMITS, "Requests are answered within 15 working days.", NO),
    (LIMITS, "At most 3 reviewers must approve each change.", NO),
    (LIMITS, "No fewer than three reviewers must approve each change.", OK),
]

RU_LEAVE = (
    "Сотрудникам положено 28 календарных дней отпуска в год. Неиспользованные дни не переносятся на следующий год."
)
RU_TRIP = (
    "Все сотрудники, кроме стажёров, могут ездить в командировки. Суточные составляют 2 500 рублей. "
    "Отчёт сдают до 5 марта 2024 г."
)
RU_DOSE = "Принимайте не более 20 мг препарата в сутки. Курс лечения длится 10-14 дней."
RU_PEOPLE = "Договор подписывает Иван Петров, директор филиала в Казани, не позднее пятницы."

RUSSIAN = [
    (RU_LEAVE, "Сотрудникам положено 28 календарных дней отпуска в год.", OK),
    (RU_LEAVE, "Отпуск сотрудника — 28 дней в год.", OK),
    (RU_LEAVE, "Положено двадцать восемь дней отпуска в год.", OK),
    (RU_LEAVE, "Сотрудникам положено 24 календарных дня отпуска в год.", NO),
    (RU_LEAVE, "Сотрудникам положено 28 недель отпуска в год.", NO),
    (RU_LEAVE, "Неиспользованные дни переносятся на следующий год.", NO),
    (RU_LEAVE, "Неиспользованные дни не переносятся.", OK),
    ("Неоплачиваемый отпуск длится 10 дней.", "Оплачиваемый отпуск длится 10 дней.", NO),
    ("Некоторые сотрудники работают дома.", "Есть сотрудники, которые работают дома.", OK),
    ("Неоплачиваемый отпуск длится 10 дней.", "Не оплачиваемый отпуск длится 10 дней.", OK),
    (RU_TRIP, "Все сотрудники, кроме стажеров, могут ездить в командировки.", OK),
    (RU_TRIP, "Все сотрудники могут ездить в командировки.", WEAK),
    (RU_TRIP, "Суточные составляют 2500 руб.", OK),
    (RU_TRIP, "Суточные составляют 2,5 тыс. рублей.", OK),
    (RU_TRIP, "Суточные составляют 2,5 рубля.", NO),
    (RU_TRIP, "Отчёт сдают до 05.03.2024.", OK),
    (RU_TRIP, "Отчёт сдают после 5 марта 2024 года.", NO),
    (RU_TRIP, "Отчёт сдают до 5 марта 2023 года.", NO),
    (RU_DOSE, "Принимайте до 20 мг препарата в сутки.", OK),
    (RU_DOSE, "Принимайте не менее 20 мг препарата в сутки.", NO),
    (RU_DOSE, "Принимайте не более 20 г препарата в сутки.", NO),
    (RU_DOSE, "Курс лечения длится от 10 до 14 дней.", OK),
    (RU_PEOPLE, "Договор подписывает Иван Петров, директор филиала в Казани.", OK),
    (RU_PEOPLE, "Договор подписывает директор Иван Сидоров.", NO),
    (RU_PEOPLE, "Договор подписывает Иван Петров, директор филиала в Самаре.", NO),
    (RU_PEOPLE, "Договор подписывает Иван Петров не позднее среды.", NO),
]

ZH_LEAVE = "员工每年享有10天带薪病假。未使用的病假不得结转到下一年。"
ZH_TRIP = "除实习生外，所有员工都可以申请出差。每日补贴为5,000元，报告应在2024年3月5日之前提交。"
ZH_DOSE = "每次服用5毫克，每天两次，二十四小时内不得超过20毫克。"
ZH_PEOPLE = "合同由财务部经理张伟在北京签署，有效期为三年。"

CHINESE = [
    (ZH_LEAVE, "员工每年享有10天带薪病假。", OK),
    (ZH_LEAVE, "员工每年有十天带薪病假。", OK),
    (ZH_LEAVE, "员工每年享有12天带薪病假。", NO),
    (ZH_LEAVE, "员工每年享有10周带薪病假。", NO),
    (ZH_LEAVE, "未使用的病假可以结转到下一年。", NO),
    (ZH_LEAVE, "未使用的病假不能结转到下一年。", OK),
    (ZH_TRIP, "除实习生外，所有员工都可以申请出差。", OK),
    (ZH_TRIP, "所有员工都可以申请出差。", WEAK),
    (ZH_TRIP, "每日补贴为5000元。", OK),
    (ZH_TRIP, "每日补贴为5千元。", OK),
    (ZH_TRIP, "每日补贴为5元。", NO),
    (ZH_TRIP, "报告应在2024-03-05之前提交。", OK),
    (ZH_TRIP, "报告应在2024年3月5日之后提交。", NO),
    (ZH_TRIP, "报告应在2023年3月5日之前提交。", NO),
    (ZH_DOSE, "每次服用5毫克，每天两次。", OK),
    (ZH_DOSE, "每次服用5克，每天两次。", NO),
    (ZH_DOSE, "24小时内不得超过20毫克。", OK),
    (ZH_DOSE, "24小时内至少服用20毫克。", NO),
    (ZH_PEOPLE, "合同由财务部经理张伟签署。", OK),
    (ZH_PEOPLE, "合同由财务部经理王芳在北京签署。", WEAK),
    (ZH_PEOPLE, "合同由财务部经理张伟在上海签署。", WEAK),
    (ZH_PEOPLE, "合同有效期为3年。", OK),
    (ZH_PEOPLE, "合同有效期为五年。", NO),
]

ACROSS = [
    (LEAVE, "Сотрудники получают 10 дней больничного в год.", WEAK),
    (LEAVE, "Сотрудники получают 15 дней больничного в год.", NO),
    (ZH_LEAVE, "Employees get 10 days of paid sick leave.", WEAK),
    (ZH_LEAVE, "Employees get 20 days of paid sick leave.", NO),
]

PAIRS = [*ENGLISH, *RUSSIAN, *CHINESE, *ACROSS]
