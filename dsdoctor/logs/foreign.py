"""Messages of the C library, shells, compilers and linkers in languages other than English.

Sources: the translations that glibc, bash, make, gcc and binutils ship, and PyCharm's (2020-2024).
"""

from __future__ import annotations

import functools
import re

#: Only phrases that state a cause; "fatal error" comes before "error", which is part of it.
FOREIGN: dict[str, tuple[str, ...]] = {
    "No such file or directory": (
        "没有那个文件或目录",
        "沒有此一檔案或目錄",
        "Datei oder Verzeichnis nicht gefunden",
        "Aucun fichier ou dossier de ce type",
        "No existe el archivo o el directorio",
        "No existe el fichero o el directorio",
        "そのようなファイルやディレクトリはありません",
        "그런 파일이나 디렉터리가 없습니다",
        "Нет такого файла или каталога",
        "Arquivo ou diretório inexistente",
        "File o directory non esistente",
        "Nie ma takiego pliku ani katalogu",
    ),
    "command not found": (
        "未找到命令",
        "命令未找到",
        "找不到指令",
        "Kommando nicht gefunden",
        "Befehl nicht gefunden",
        "commande introuvable",
        "orden no encontrada",
        "コマンドが見つかりません",
        "команда не найдена",
        "comando não encontrado",
        "comando non trovato",
    ),
    "fatal error": (
        "致命错误",
        "嚴重錯誤",
        "schwerwiegender Fehler",
        "erreur fatale",
        "error fatal",
        "致命的エラー",
        "치명적 오류",
        "фатальная ошибка",
        "erro fatal",
        "errore irreversibile",
    ),
    "unrecognized command line option ": (
        "无法识别的命令行选项",
        "unbekannte Kommandozeilenoption",
        "認識できないコマンドラインオプション",
    ),
    "cannot find -l": (
        "找不到 -l",
        "ne peut trouver -l",
        "no se puede encontrar -l",
    ),
    "No space left on device": (
        "设备上没有空间",
        "裝置上已無多餘空間",
        "Auf dem Gerät ist kein Speicherplatz mehr verfügbar",
        "Aucun espace disponible sur le périphérique",
        "No queda espacio en el dispositivo",
        "デバイスに空き領域がありません",
        "На устройстве не осталось свободного места",
        "장치에 남은 공간이 없음",
        "Não há espaço disponível no dispositivo",
    ),
    "Permission denied": (
        "权限不够",
        "权限不足",
        "Keine Berechtigung",
        "Permission non accordée",
        "Permiso denegado",
        "許可がありません",
        "허가 거부",
        "Отказано в доступе",
    ),
    "Too many open files": (
        "打开的文件过多",
        "Zu viele offene Dateien",
        "Trop de fichiers ouverts",
        "開啟太多檔案",
        "ファイルを開きすぎです",
        "열린 파일이 너무 많음",
        "Слишком много открытых файлов",
    ),
    "Address already in use": (
        "地址已在使用",
        "Die Adresse wird bereits verwendet",
    ),
    "Cannot allocate memory": (
        "无法分配内存",
        "Nicht genügend Hauptspeicher verfügbar",
        "Не удалось выделить память",
        "無法配置記憶體",
        "No se pudo asignar memoria",
        "メモリを確保できません",
        "메모리를 할당할 수 없습니다",
        "Невозможно выделить память",
    ),
    "Connection refused": (
        "拒绝连接",
        "连接被拒绝",
        "Verbindungsaufbau abgelehnt",
    ),
    "Bus error": (
        "总线错误",
        "Bus-Zugriffsfehler",
        "Erreur de bus",
        "バスエラー",
        "Error del bus",
        "Erreur du bus",
        "匯流排錯誤",
        "버스 오류",
        "Ошибка шины",
    ),
    "Segmentation fault": (
        "段错误",
        "Speicherzugriffsfehler",
        "Erreur de segmentation",
        "程式記憶體區段錯誤",
        "Violación de segmento",
        "Errore di segmentazione",
        "Falha de segmentação",
        "Ошибка сегментирования",
        "세그멘테이션 오류",
    ),
    "core dumped": (
        "核心已转储",
        "Speicherabzug geschrieben",
        "核心已傾印",
        "コアダンプ",
        "코어 덤프됨",
        "'core' generado",
        "core dump creato",
        "imagem do núcleo gravada",
        "образ памяти сброшен на диск",
    ),
    "Killed": ("已杀死",),
    "Terminated": ("已终止",),
    "Aborted": ("已放弃", "Аварийный останов"),
    "Aborted (core dumped)": (
        "Abgebrochen (Speicherabzug geschrieben)",
        "Abandon (core dumped)",
        "Abortado ('core' generado)",
        "中止 (核心已傾印)",
        "中止 (コアダンプ)",
    ),
    "Floating point exception": (
        "浮点数例外",
        "Gleitkomma-Ausnahme",
        "Exception en point flottant",
        "Excepción de coma flotante",
    ),
    "Illegal instruction": (
        "非法指令",
        "Ungültiger Maschinenbefehl",
        "Instruction non permise",
        "Instrucción ilegal",
    ),
    "Process finished with exit code ": (
        "进程已结束，退出代码为 ",
        "进程已结束，退出代码 ",
        "进程已结束，退出代码",
        "进程已结束,退出代码为 ",
        "进程已结束,退出代码 ",
        "进程已结束,退出代码",
    ),
    "Input/output error": (
        "输入/输出错误",
        "輸入/輸出錯誤",
        "入力/出力エラーです",
        "입력/출력 오류",
        "Ошибка ввода/вывода",
    ),
    "Disk quota exceeded": (
        "超出磁盘限额",
        "磁碟配額已滿",
        "Der zugewiesene Plattenplatz (Quota) ist überschritten",
        "Превышена дисковая квота",
    ),
    "Read-only file system": (
        "只读文件系统",
        "唯讀的檔案系統",
        "読み込み専用ファイルシステムです",
        "Файловая система доступна только для чтения",
    ),
    "Connection timed out": (
        "连接超时",
        "接続がタイムアウトしました",
        "Время ожидания соединения истекло",
    ),
    "No route to host": (
        "没有到主机的路由",
        "ホストへの経路がありません",
        "Нет маршрута до узла",
    ),
    "Resource temporarily unavailable": (
        "资源暂时不可用",
        "資源暫時無法取得",
        "Ресурс временно недоступен",
    ),
    "Temporary failure in name resolution": (
        "域名解析暂时失败",
        "Temporärer Fehler bei der Namensauflösung",
        "Échec temporaire dans la résolution du nom",
    ),
    "Name or service not known": (
        "未知的名称或服务",
        "Der Name oder der Dienst ist nicht bekannt",
    ),
    "error": (
        "错误",
        "エラー",
        "ошибка",
    ),
}
#: Words for "Killed" that mean it only where nothing else stands in the line.
ALONE = frozenset(
    {
        "Getötet", "Processus arrêté", "Terminado (killed)", "Убито", "Ucciso", "죽었음",
        "強制終了", "強制結束",
    },
)  # fmt: skip
ENGLISH = {foreign: word for word, many in FOREIGN.items() for foreign in many}


@functools.cache
def _phrases() -> re.Pattern[str]:
    return re.compile("|".join(map(re.escape, ENGLISH)))


def translated(text: str) -> str:
    """A line with the known phrases in English, and with English colons.

    >>> translated("致命错误：Python.h：没有那个文件或目录")
    'fatal error: Python.h: No such file or directory'
    >>> translated("erreur fatale : Python.h : Aucun fichier ou dossier de ce type")
    'fatal error: Python.h: No such file or directory'
    """
    if text.strip() in ALONE:
        return "Killed"
    if not any(phrase in text for phrase in ENGLISH):
        return text
    plain = _phrases().sub(lambda found: ENGLISH[found[0]], text)
    plain = (
        plain.replace("\uff08", " (")
        .replace("\uff09", ")")
        .replace("\uff1a", ": ")
        .replace("\u00a0", " ")
        .replace(" : ", ": ")
    )
    return re.sub(r": {2,9}", ": ", plain)
